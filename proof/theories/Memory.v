(** Sums, and the reasons for terms of memory: reads past writes, and writes over writes. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Places.

Section Memory.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable T : table op R.
Notation D := (D M T).
Notation knd := (knd T).
Notation cls := (cls T).
Notation tty := (tty T).
Notation TL := (TL M T).

(** ** Sums *)
(** A term as a class plus a constant, modulo 2^w. A constant is a sum without a class. *)
Fixpoint sum (n : nat) (w : Z) (t : nat) : option nat * Z :=
  match n with
  | 0 => (Some t, 0%Z)
  | S n' =>
    match knd t with
    | Some (KOp o args) =>
      match arith_of L o with
      | Some (a, w') =>
        if (w' =? w)%Z then
          match a, args with
          | AConst, [] => match fold L o [] with Some c => (None, zc L c) | None => (Some t, 0%Z)
            end
          | AAdd, [x; y] =>
            match constant L T y, constant L T x with
            | Some c, _ => let (b, k) := sum n' w x in (b, (k + zc L c)%Z)
            | None, Some c => let (b, k) := sum n' w y in (b, (k + zc L c)%Z)
            | None, None => (Some t, 0%Z)
            end
          | ASub, [x; y] =>
            match constant L T y with
            | Some c => let (b, k) := sum n' w x in (b, (k - zc L c)%Z)
            | None => (Some t, 0%Z)
            end
          | _, _ => (Some t, 0%Z)
          end
        else (Some t, 0%Z)
      | None => (Some t, 0%Z)
      end
    | _ => (Some t, 0%Z)
    end
  end.
Definition obase (b c : option nat) : bool :=
  match b, c with Some x, Some y => x =? y | None, None => true | _, _ => false end.
Definition is_sum (t r : nat) : bool :=
  match knd t with
  | Some (KOp o _) =>
    match arith_of L o with
    | Some (_, w) =>
      let (b, k) := sum (S t) w t in let (c, m) := sum (S r) w r in
      obase b c && (k mod 2 ^ w =? m mod 2 ^ w)%Z && (tty r =? tty t)
    | None => false
    end
  | _ => false
  end.

(** ** Accesses *)
Record access := Access { ao : op; ap : place; ax : list nat; am : nat }.
Definition access_of (of : op -> option place) (t : nat) : option access :=
  match knd t with
  | Some (KOp o args) =>
    match of o, rev args with
    | Some p, m :: xs => Some (Access o p (rev xs) m) | _, _ => None end
  | _ => None
  end.
Definition read_at := access_of (reads L).
Definition write_at := access_of (writes L).
Definition like (a b : access) : bool := op_eqb L (ao a) (ao b) && nats_eqb (ax a) (ax b).
(** A class as a sum, shown by an earlier term [via] of the class. *)
Definition sum_via (t : nat) (w : Z) (c : nat) (via : option nat) : option (option nat * Z) :=
  match via with
  | None => Some (sum (S c) w c)
  | Some u => if (u <? t) && relies T t u && (cls u =? c) then Some (sum (S u) w u) else None
  end.
Definition distance (t : nat) (a b : access) (va vb : option nat) : option Z :=
  match ap a, ax a, ax b with
  | Bytes _ _ _ w, x :: _, y :: _ =>
    match sum_via t w x va, sum_via t w y vb with
    | Some (c, k), Some (d, m) => if obase c d then Some (m - k)%Z else None
    | _, _ => None
    end
  | _, _, _ => None
  end.
Definition has_address (a : access) : bool :=
  match ap a, ax a with Bytes _ _ _ _, [] => false | _, _ => true end.
Definition hides (t : nat) (a b : access) : bool :=
  has_address b && covers (ap a) (ap b) (distance t a b None None).
(** Two memories are the same but for places that the write [a] hides. *)
Fixpoint alike (n t : nat) (a : access) (m m' : nat) : bool :=
  match n with
  | 0 => false
  | S n' =>
    if m =? m' then true else
    match write_at m, write_at m' with
    | Some b, Some b' =>
      if hides t a b then alike n' t a (am b) m'
      else if hides t a b' then alike n' t a m (am b')
      else like b b' && has_address b && alike n' t a (am b) (am b')
    | Some b, None => hides t a b && alike n' t a (am b) m'
    | None, Some b' => hides t a b' && alike n' t a m (am b')
    | None, None => false
    end
  end.
(** The largest number of writes that are looked at. *)
Definition max_writes := 1024.

Definition is_read_apart (t c : nat) (v v' : option nat) (r : nat) : bool :=
  match read_at t, read_at r with
  | Some a, Some f =>
    match write_at (am a) with
    | Some b =>
      (r <? t) && relies T t r && (cls r =? c) && has_address a && has_address b && like f a && (am
        f =? am b) &&
      is_apart (ap a) (ap b) (distance t a b v v')
    | None => false
    end
  | _, _ => false
  end.
Definition is_stored (t c : nat) (v v' : option nat) : bool :=
  match read_at t with
  | Some a =>
    match write_at (am a) with
    | Some b =>
      match rev (ax b) with
      | x :: _ =>
        has_address a && has_address b && (x =? c) && gives_back L (ao b) (ao a) &&
        (tty x =? rty L (ao a)) && (match ap b, ax b with Bytes _ _ _ _, [_] => false | _,
          _ => true end) &&
        covers (ap a) (ap b) (distance t a b v v') && covers (ap b) (ap a) (distance t b a v' v)
      | [] => false
      end
    | None => false
    end
  | None => false
  end.
Definition is_covering (t c r : nat) : bool :=
  match write_at t, write_at r with
  | Some a, Some b =>
    (r <? t) && relies T t r && (cls r =? c) && has_address a && like b a && alike max_writes t a
      (am a) (am b)
  | _, _ => false
  end.
Definition is_swap (t c : nat) (v v' : option nat) (i r : nat) : bool :=
  match write_at t, write_at i, write_at r with
  | Some a, Some f, Some l =>
    match write_at (am a) with
    | Some b =>
      (i <? t) && relies T t i && (r <? t) && relies T t r && (cls r =? c)
        && has_address a && has_address b &&
      like f a && (am f =? am b) && like l b && (am l =? cls i) &&
      is_apart (ap a) (ap b) (distance t a b v v')
    | None => false
    end
  | _, _, _ => false
  end.

(** ** Why they are right *)
Hypothesis F : Faithful L M.
Hypothesis shapes_ok : chk_shapes L T = true.
Variable s : nat -> V.
Hypothesis typed_leaves : TL s.

Definition base_num (b : option nat) : Z := match b with Some u => num M (D s u) | None => 0%Z end.
Lemma sum_ok w : (0 <= w)%Z -> forall n t, let (b, k) := sum n w t in
  (num M (D s t) mod 2 ^ w = (base_num b + k) mod 2 ^ w)%Z.
Proof.
  intro Hw. pose proof (pow_pos w Hw) as P.
  assert (Own: forall t, (num M (D s t) mod 2 ^ w = (base_num (Some t) + 0) mod 2 ^ w)%Z)
    by (intro t; simpl; f_equal; lia).
  induction n as [|n IH]; intro t; [apply Own|]. simpl.
  destruct (knd t) as [[n0| |i n0|o args]|] eqn:K; try apply Own.
  destruct (arith_of L o) as [[a w']|] eqn:A; [|apply Own].
  destruct (w' =? w)%Z eqn:Ew; [|apply Own]. apply Z.eqb_eq in Ew. subst w'.
  destruct (arith_ok _ _ F _ _ _ A) as [_ [Rt Ar]].
  assert (Plus: forall x y c b k, D s t = norm M w (num M (D s x) + c) -> D s y = D s y ->
    (num M (D s x) mod 2 ^ w = (base_num b + k) mod 2 ^ w)%Z ->
    (num M (D s t) mod 2 ^ w = (base_num b + (k + c)) mod 2 ^ w)%Z).
  { intros x y c b k E _ H. rewrite E, (num_norm _ _ F), Zplus_mod, H, <- Zplus_mod. f_equal. lia. }
  destruct a.
  - destruct args as [|x [|y [|]]]; try apply Own.
    pose proof (op_D L M T shapes_ok s _ _ _ K) as Dt. simpl in Dt. rewrite Ar in Dt.
    destruct (constant L T y) as [c|] eqn:Cy.
    + specialize (IH x). destruct (sum n w x) as [b k].
      rewrite (const_D L M T F shapes_ok _ _ s Cy), (zc_ok _ _ F) in Dt. eapply (Plus x x); eauto.
    + destruct (constant L T x) as [c|] eqn:Cx; [|apply Own]. specialize (IH y).
      destruct (sum n w y) as [b k].
      rewrite (const_D L M T F shapes_ok _ _ s Cx), (zc_ok _ _ F), Z.add_comm in Dt.
      eapply (Plus y y); eauto.
  - destruct args as [|x [|y [|]]]; try apply Own.
    pose proof (op_D L M T shapes_ok s _ _ _ K) as Dt. simpl in Dt. rewrite Ar in Dt.
    destruct (constant L T y) as [c|] eqn:Cy; [|apply Own]. specialize (IH x).
    destruct (sum n w x) as [b k].
    rewrite (const_D L M T F shapes_ok _ _ s Cy), (zc_ok _ _ F) in Dt.
    replace (k - zc L c)%Z with (k + - zc L c)%Z by lia. eapply (Plus x x); eauto.
  - destruct args; try apply Own. destruct (fold L o []) as [c|] eqn:Fo; [|apply Own].
    rewrite (op_D L M T shapes_ok s _ _ _ K). simpl. apply (fold_ok _ _ F) in Fo. simpl in Fo.
    rewrite Fo, (zc_ok _ _ F). simpl. f_equal; lia.
Qed.
Lemma obase_ok b c : obase b c = true -> b = c.
Proof. destruct b, c; simpl; intro H; try discriminate; auto. apply Nat.eqb_eq in H. congruence.
  Qed.
Lemma is_sum_ok t r : is_sum t r = true -> D s t = D s r.
Proof.
  unfold is_sum. destruct (knd t) as [[n0| |i n0|o args]|] eqn:K; try discriminate.
  destruct (arith_of L o) as [[a w]|] eqn:A; [|discriminate].
  destruct (arith_ok _ _ F _ _ _ A) as [Hw [Rt _]].
  pose proof (sum_ok w Hw (S t) t) as St. pose proof (sum_ok w Hw (S r) r) as Sr.
  destruct (sum (S t) w t) as [b k]. destruct (sum (S r) w r) as [c m]. intro H.
  apply andb_true_iff in H. destruct H as [H Ht]. apply andb_true_iff in H. destruct H as [Hb Hk].
  apply obase_ok in Hb. apply Z.eqb_eq in Hk. apply Nat.eqb_eq in Ht. subst c.
  destruct (op_shape L T shapes_ok _ _ _ K) as [Tt _]. rewrite Rt in Tt.
  rewrite <- (norm_num _ _ F w (D s t)) by (rewrite <- Tt; now apply (D_typed L M T F shapes_ok)).
  rewrite <- (norm_num _ _ F w (D s r))
    by (rewrite <- Tt, <- Ht; now apply (D_typed L M T F shapes_ok)).
  apply (norm_mod _ _ F). rewrite St, Sr. rewrite (Zplus_mod _ k), (Zplus_mod _ m). now rewrite Hk.
Qed.

Lemma access_ok of t a : access_of of t = Some a ->
  of (ao a) = Some (ap a) /\ D s t = opsem M (ao a) (map (D s) (ax a) ++ [D s (am a)]).
Proof.
  unfold access_of. destruct (knd t) as [[n0| |i n0|o args]|] eqn:K; try discriminate.
  destruct (of o) as [p|] eqn:Po; [|discriminate].
  destruct (rev args) as [|m xs] eqn:Rv; [discriminate|]. intro H. inversion H; subst a; simpl.
  split; auto. rewrite (op_D L M T shapes_ok s _ _ _ K).
  rewrite <- (rev_involutive args), Rv. simpl. now rewrite map_app.
Qed.
Lemma like_ok a b : like a b = true -> ao a = ao b /\ ax a = ax b.
Proof.
  unfold like. intro H. apply andb_true_iff in H. destruct H as [H1 H2].
  split; [now apply (op_eqb_ok _ _ F)|now apply nats_eqb_ok].
Qed.
(** The address of an access as a number; any number if it has none. *)
Definition address (a : access) : Z := num M (hd (D s (am a)) (map (D s) (ax a))).

Section At.
Variable t : nat.
Hypothesis before : forall u, u < t -> relies T t u = true -> D s u = D s (cls u).
Lemma sum_via_ok w c via b k : (0 <= w)%Z -> sum_via t w c via = Some (b, k) ->
  (num M (D s c) mod 2 ^ w = (base_num b + k) mod 2 ^ w)%Z.
Proof.
  intros Hw H. unfold sum_via in H. destruct via as [u|].
  - destruct ((u <? t) && relies T t u && (cls u =? c)) eqn:G; [|discriminate]. bools.
    pose proof (sum_ok w Hw (S u) u) as Su. assert (Q: sum (S u) w u = (b, k)) by congruence.
    rewrite Q in Su.
    subst c. rewrite <- before by auto. exact Su.
  - pose proof (sum_ok w Hw (S c) c) as Sc. assert (Q: sum (S c) w c = (b, k)) by congruence.
    rewrite Q in Sc. exact Sc.
Qed.
Lemma distance_ok a b va vb : ok_place (ap a) ->
  distant (address a) (address b) (width (ap a)) (distance t a b va vb).
Proof.
  intro Op. unfold distance, address. destruct (ap a) as [m off len w|n]; [|exact I].
  destruct (ax a) as [|x xs]; [exact I|]. destruct (ax b) as [|y ys]; [exact I|]. simpl in *.
  destruct (sum_via t w x va) as [[c k]|] eqn:Sx; [|exact I].
  destruct (sum_via t w y vb) as [[d n]|] eqn:Sy; [|exact I].
  destruct (obase c d) eqn:Ob; [|exact I]. apply obase_ok in Ob. subst d.
  apply sum_via_ok in Sx; [|lia]. apply sum_via_ok in Sy; [|lia]. simpl.
  rewrite Zminus_mod, Sy, Sx, <- Zminus_mod. f_equal. lia.
Qed.
Lemma place_of_read a t' : read_at t' = Some a -> ok_place (ap a).
Proof.
  intro H. apply access_ok in H. destruct H as [H _].
  exact (place_ok _ _ F _ _ (or_introl H)).
Qed.
Lemma place_of_write a t' : write_at t' = Some a -> ok_place (ap a).
Proof.
  intro H. apply access_ok in H. destruct H as [H _].
  exact (place_ok _ _ F _ _ (or_intror H)).
Qed.
(** A place at the address of an access does not depend on the memory. *)
Lemma within_hd a m l : has_address a = true ->
  within (num M (hd m (map (D s) (ax a)))) (ap a) l <-> within (address a) (ap a) l.
Proof.
  unfold has_address, address. destruct (ap a); [|destruct l; simpl; tauto].
  destruct (ax a); [discriminate|]. simpl. tauto.
Qed.
Lemma addressed_ok a : has_address a = true -> addressed (ap a) (map (D s) (ax a)).
Proof. unfold has_address, addressed. now destruct (ap a), (ax a). Qed.
Ltac outside := first [solve [auto using addressed_ok] | rewrite within_hd by auto; auto].
Lemma look_out a t' l : write_at t' = Some a -> has_address a = true -> ~ within (address a) (ap a)
  l ->
  look M (D s t') l = look M (D s (am a)) l.
Proof.
  intros H Ha N. destruct (access_ok _ _ _ H) as [Wr ->].
  apply (write_out _ _ F _ _ _ _ _ Wr); [now apply addressed_ok|].
  intro I. apply N. now apply within_hd in I.
Qed.
Lemma apart_right c v v' r : is_read_apart t c v v' r = true -> D s t = D s c.
Proof.
  unfold is_read_apart. destruct (read_at t) as [a|] eqn:Ra; [|discriminate].
  destruct (read_at r) as [f|] eqn:Rf; [|discriminate].
  destruct (write_at (am a)) as [b|] eqn:Wb; [|discriminate]. intro H.
  repeat (apply andb_true_iff in H; let Q := fresh "Q" in destruct H as [H Q]).
  apply Nat.ltb_lt in H. apply Nat.eqb_eq in Q4. apply like_ok in Q1. destruct Q1 as [Eo Ex].
  apply Nat.eqb_eq in Q0. rewrite <- Q4, <- before by auto.
  destruct (access_ok _ _ _ Ra) as [Rd ->]. destruct (access_ok _ _ _ Rf) as [_ ->].
  rewrite Eo, Ex, Q0. apply (read_ok _ _ F _ _ _ _ _ Rd); [now apply addressed_ok|].
  intros l Wi.
  apply look_out; auto. intro Wj. apply within_hd in Wi; auto.
  pose proof (place_of_read _ _ Ra) as Pa. pose proof (place_of_write _ _ Wb) as Pb.
  exact (apart_ok _ _ _ _ _ _ Pa Pb Q (distance_ok a b v v' Pa) Wi Wj).
Qed.
Lemma stored_right c v v' : is_stored t c v v' = true -> D s t = D s c.
Proof.
  unfold is_stored. destruct (read_at t) as [a|] eqn:Ra; [|discriminate].
  destruct (write_at (am a)) as [b|] eqn:Wb; [|discriminate].
  destruct (rev (ax b)) as [|x xs] eqn:Rv; [discriminate|]. intro H.
  repeat (apply andb_true_iff in H; let Q := fresh "Q" in destruct H as [H Q]).
  apply Nat.eqb_eq in Q4. subst c. apply Nat.eqb_eq in Q2.
  destruct (access_ok _ _ _ Ra) as [Rd ->]. destruct (access_ok _ _ _ Wb) as [Wr Dm].
  assert (Ax: ax b = rev xs ++ [x]) by (rewrite <- (rev_involutive (ax b)), Rv; reflexivity).
  rewrite Dm, Ax, map_app. simpl. rewrite <- app_assoc. simpl.
  pose proof (place_of_read _ _ Ra) as Pa. pose proof (place_of_write _ _ Wb) as Pb.
  apply (gives_back_ok _ _ F _ _ _ _ _ _ _ _ Q3 Wr Rd).
  - unfold addressed. destruct (ap b); auto. rewrite Ax in Q1.
    destruct (rev xs); [discriminate|]. discriminate.
  - now apply addressed_ok.
  - rewrite <- Q2. now apply (D_typed L M T F shapes_ok).
  - intro l.
    assert (A1: within (num M (hd (D s x) (map (D s) (rev xs)))) (ap b) l <-> within (address b)
      (ap b) l).
    { unfold address. destruct (ap b); [|destruct l; simpl; tauto].
      rewrite Ax in Q1 |- *. destruct (rev xs) as [|y ys]; [discriminate|]. simpl. tauto. }
    rewrite A1, within_hd by auto. split; intro Wi.
    + exact (covers_ok _ _ _ _ _ _ Pa Pb Q0 (distance_ok a b v v' Pa) Wi).
    + exact (covers_ok _ _ _ _ _ _ Pb Pa Q (distance_ok b a v' v Pb) Wi).
Qed.
Lemma alike_ok a l : ok_place (ap a) -> ~ within (address a) (ap a) l ->
  forall n m m', alike n t a m m' = true -> look M (D s m) l = look M (D s m') l.
Proof.
  intros Pa N. assert (Skip: forall b m, write_at m = Some b -> hides t a b = true ->
    look M (D s m) l = look M (D s (am b)) l).
  { intros b m Wb H. unfold hides in H. apply andb_true_iff in H. destruct H as [H1 H2].
    apply look_out; auto. intro Wi. apply N.
    exact (covers_ok _ _ _ _ _ _ Pa (place_of_write _ _ Wb) H2 (distance_ok a b None None Pa) Wi). }
  induction n as [|n IH]; intros m m' H; simpl in H; [discriminate|].
  destruct (m =? m') eqn:E; [apply Nat.eqb_eq in E; now subst|].
  destruct (write_at m) as [b|] eqn:Wb; destruct (write_at m') as [b'|] eqn:Wb'; try discriminate.
  - destruct (hides t a b) eqn:Hb; [rewrite (Skip b m) by auto; auto|].
    destruct (hides t a b') eqn:Hb'; [rewrite (Skip b' m') by auto; auto|].
    apply andb_true_iff in H. destruct H as [H H3]. apply andb_true_iff in H. destruct H as [H1 H2].
    apply like_ok in H1. destruct H1 as [Eo Ex].
    destruct (access_ok _ _ _ Wb) as [Wr Dm]. destruct (access_ok _ _ _ Wb') as [Wr' Dm'].
    rewrite Dm, Dm', <- Eo, <- Ex.
    destruct (within_dec (address b) (ap b) l (place_of_write _ _ Wb)) as [Wi|Wo].
    + apply (write_in _ _ F _ _ _ _ _ _ Wr); [now apply addressed_ok|now apply within_hd].
    + rewrite !(write_out _ _ F _ _ _ _ _ Wr); outside.
  - apply andb_true_iff in H. destruct H as [H1 H2]. rewrite (Skip b m) by auto. auto.
  - apply andb_true_iff in H. destruct H as [H1 H2]. rewrite (Skip b' m') by auto. auto.
Qed.
Lemma covers_right c r : is_covering t c r = true -> D s t = D s c.
Proof.
  unfold is_covering. destruct (write_at t) as [a|] eqn:Wa; [|discriminate].
  destruct (write_at r) as [b|] eqn:Wb; [|discriminate]. intro H.
  repeat (apply andb_true_iff in H; let Q := fresh "Q" in destruct H as [H Q]).
  apply Nat.ltb_lt in H. apply Nat.eqb_eq in Q2. rewrite <- Q2, <- before by auto.
  apply like_ok in Q0. destruct Q0 as [Eo Ex].
  destruct (access_ok _ _ _ Wa) as [Wr ->]. destruct (access_ok _ _ _ Wb) as [_ ->]. rewrite Eo, Ex.
  apply (memory_ext _ _ F _ _ _ _ _ _ Wr Wr). intro l. pose proof (place_of_write _ _ Wa) as Pa.
  destruct (within_dec (address a) (ap a) l Pa) as [Wi|Wo].
  - apply (write_in _ _ F _ _ _ _ _ _ Wr); [now apply addressed_ok|now apply within_hd].
  - rewrite !(write_out _ _ F _ _ _ _ _ Wr); try outside.
    eapply alike_ok; eauto.
Qed.
Lemma swaps_right c v v' i r : is_swap t c v v' i r = true -> D s t = D s c.
Proof.
  unfold is_swap. destruct (write_at t) as [a|] eqn:Wa; [|discriminate].
  destruct (write_at i) as [f|] eqn:Wf; [|discriminate].
  destruct (write_at r) as [z|] eqn:Wz; [|discriminate].
  destruct (write_at (am a)) as [b|] eqn:Wb; [|discriminate]. intro H.
  repeat (apply andb_true_iff in H; let Q := fresh "Q" in destruct H as [H Q]).
  apply Nat.ltb_lt in H. apply Nat.ltb_lt in Q8. apply Nat.eqb_eq in Q6.
  rewrite <- Q6, <- before by auto.
  apply like_ok in Q3. destruct Q3 as [Eo Ex]. apply Nat.eqb_eq in Q2.
  apply like_ok in Q1. destruct Q1 as [Eo' Ex']. apply Nat.eqb_eq in Q0.
  destruct (access_ok _ _ _ Wa) as [Wra Da]. destruct (access_ok _ _ _ Wb) as [Wrb Db].
  destruct (access_ok _ _ _ Wf) as [_ Df]. destruct (access_ok _ _ _ Wz) as [_ Dz].
  rewrite Eo, Ex, Q2 in Df. rewrite Eo', Ex', Q0, <- before, Df in Dz by auto. rewrite Da, Dz.
  apply (memory_ext _ _ F _ _ _ _ _ _ Wra Wrb). intro l.
  pose proof (place_of_write _ _ Wa) as Pa. pose proof (place_of_write _ _ Wb) as Pb.
  assert (Ap: within (address a) (ap a) l -> within (address b) (ap b) l -> False).
  { intros Wi Wj. exact (apart_ok _ _ _ _ _ _ Pa Pb Q (distance_ok a b v v' Pa) Wi Wj). }
  destruct (within_dec (address a) (ap a) l Pa) as [Wi|Wo].
  - rewrite (write_out _ _ F _ _ _ _ _ Wrb) by outside.
    apply (write_in _ _ F _ _ _ _ _ _ Wra); [now apply addressed_ok|now apply within_hd].
  - rewrite (write_out _ _ F _ _ _ _ _ Wra) by outside. rewrite Db.
    destruct (within_dec (address b) (ap b) l Pb) as [Wj|Wk].
    + apply (write_in _ _ F _ _ _ _ _ _ Wrb); [now apply addressed_ok|now apply within_hd].
    + rewrite !(write_out _ _ F _ _ _ _ _ Wrb) by outside.
      rewrite (write_out _ _ F _ _ _ _ _ Wra) by outside. reflexivity.
Qed.
End At.
End Memory.
