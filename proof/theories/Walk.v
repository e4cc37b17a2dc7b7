(** The operations on the way to the next anchor that may trap, and what a run knows of them at the
    anchor: the operands on which each was executed, and which of them traps first ([track]). *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Traps.

Section Walk.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variable anch : nat -> bool.
Variable stop : nat -> bool.
Variable v : version op.
Variable voucher : nat -> nat.
Notation D := (D M T).
Notation step1 := (step1 L M T anch stop v).
Notation nreach := (nreach L M T anch stop v).
Notation at_anchor := (at_anchor anch v).
Notation Inv := (Inv L M T v).
Notation calm := (calm L M T halt anch stop v).
Notation passes := (passes halt v).
Notation traps := (traps halt v).
Notation contents := (contents M T v).
Notation live_edges := (live_edges L T v).

(** The operations of a way that may trap, each with whether it is open: not excused. And the place
    of the anchor. *)
Fixpoint walk (fuel b k : nat) : option (list (nat * bool) * (nat * nat)) :=
  match fuel with
  | 0 => None
  | S n =>
    match blk_at v b with
    | None => None
    | Some B =>
      if is_anch anch B k then Some ([], (b, k)) else
      match inst_at B k with
      | Some (IPure _ x o a) =>
        if can_trap H o then
          match walk n b (S k) with
          | Some (l, z) => Some ((x, negb (excused L T H v voucher b k x o a)) :: l, z)
          | None => None
          end
        else walk n b (S k)
      | Some (IEff _ _ _ _) => None
      | None => match one_way (live_edges (lt B)) with
                | Some x => walk n (dst (fst x)) 0 | None => None
                end
      end
    end
  end.
Definition opens (l : list (nat * bool)) : list nat := map fst (filter snd l).
Lemma opens_app l m : opens (l ++ m) = opens l ++ opens m.
Proof. unfold opens. now rewrite filter_app, map_app. Qed.
Lemma opens_in x l : In x (opens l) -> In x (map fst l).
Proof.
  unfold opens. intro I. apply in_map_iff in I. destruct I as [y [<- I]]. apply filter_In in I.
  apply in_map. tauto.
Qed.
Lemma opens_nodup l : forall a b, NoDup (a ++ map fst l ++ b) -> NoDup (a ++ opens l ++ b).
Proof.
  induction l as [|[x []] l IH]; intros a b N; auto; unfold opens in *; simpl in *.
  - change (NoDup (a ++ [x] ++ map fst (filter snd l) ++ b)). rewrite app_assoc. apply IH.
    now rewrite <- app_assoc.
  - apply IH. now apply NoDup_remove_1 in N.
Qed.
Lemma nodup_apart {A} (a b c : list A) x : NoDup (a ++ b ++ c) -> In x b -> In x c -> False.
Proof.
  intros N Ib Ic. induction a as [|y a IH]; simpl in N; [|inversion N; auto].
  induction b as [|y b IH]; [contradiction|]. simpl in N. inversion N; subst.
  destruct Ib as [->|Ib]; auto. apply H2. apply in_or_app. auto.
Qed.
Lemma walk_same n : forall m b k r r', walk n b k = Some r -> walk m b k = Some r' -> r = r'.
Proof.
  induction n as [|n IH]; intros [|m] b k r r' E E'; try discriminate. simpl in E, E'.
  destruct (blk_at v b) as [B|]; [|discriminate]. destruct (is_anch anch B k); [congruence|].
  destruct (inst_at B k) as [[i x o a|]|]; try discriminate.
  - destruct (can_trap H o); [|now apply (IH m b (S k))].
    destruct (walk n b (S k)) as [r1|] eqn:E1; [|discriminate].
    destruct (walk m b (S k)) as [r2|] eqn:E2; [|discriminate].
    rewrite (IH m b (S k) _ _ E1 E2) in E. congruence.
  - destruct (one_way (live_edges (lt B))) as [x|]; [|discriminate]. eauto.
Qed.

(** ** Operations and operands *)
Definition event := (op * list V)%type.
(** The first that traps. *)
Fixpoint first_trap (w : W) (l : list (nat * event)) : option event :=
  match l with
  | [] => None
  | (_, (o, vs)) :: r => if halt o vs w then Some (o, vs) else first_trap w r
  end.
Lemma first_app w l m : first_trap w (l ++ m) =
  match first_trap w l with Some e => Some e | None => first_trap w m end.
Proof. induction l as [|[x [o vs]] l IH]; simpl; auto. now destruct (halt o vs w). Qed.
Lemma first_none w l : (forall x o vs, In (x, (o, vs)) l -> halt o vs w = false) ->
  first_trap w l = None.
Proof.
  induction l as [|[x [o vs]] l IH]; simpl; intro N; auto. rewrite (N x) by now left.
  apply IH. intros; eapply N; eauto.
Qed.
Lemma first_halts w l o vs : first_trap w l = Some (o, vs) -> halt o vs w = true.
Proof.
  induction l as [|[x [o' vs']] l IH]; simpl; [discriminate|].
  destruct (halt o' vs' w) eqn:Ht; auto. congruence.
Qed.
(** Operations are listed with the operands that they have now, as far as they are available. *)
Definition lists (s : st V W) (l : list (nat * event)) : Prop := forall y o vs,
  In (y, (o, vs)) l -> exists a, site_of v y = Some (o, a) /\ can_trap H o = true /\
  (availb v y (sb s) (sk s) = true -> vs = contents s a).

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis table_ok : chk_table L T = true.
Hypothesis version_ok : chk_version L T anch v = true.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity v.
Hypothesis args_ty : args_typed M T args.
Notation start := (start M T v args w).

(** What one step does to a walk: it is no operation that may trap, or the first of the list. *)
Definition still_step (s s1 : st V W) (l l1 : list (nat * bool)) : Prop := l = l1 /\ passes s /\
  forall y o a, site_of v y = Some (o, a) -> can_trap H o = true ->
  availb v y (sb s1) (sk s1) = true ->
  availb v y (sb s) (sk s) = true /\ contents s1 a = contents s a.
Definition risky_step (s s1 : st V W) (l l1 : list (nat * bool)) : Prop :=
  exists i B x o a b, blk_at v (sb s) = Some B /\ inst_at B (sk s) = Some (IPure i x o a) /\
  l = (x, b) :: l1 /\ site_of v x = Some (o, a) /\ can_trap H o = true /\
  map (se s) a = contents s1 a /\ (b = false -> calm start s -> passes s) /\
  forall y o' a', site_of v y = Some (o', a') -> y <> x -> availb v y (sb s1) (sk s1) = true ->
  availb v y (sb s) (sk s) = true /\ contents s1 a' = contents s a'.
Lemma walk_step n s s1 l z : Inv s -> at_anchor s = false -> step1 s = Some s1 ->
  walk n (sb s) (sk s) = Some (l, z) -> exists m l1,
  walk m (sb s1) (sk s1) = Some (l1, z) /\ sw s1 = sw s /\ str s1 = str s /\
  (still_step s s1 l l1 \/ risky_step s s1 l l1).
Proof.
  intros I A St Wk. destruct n as [|n]; [discriminate|]. simpl in Wk.
  destruct (inv_at _ _ _ _ _ I) as [B [E K]]. unfold Paths.at_anchor in A. rewrite E in A, Wk.
  rewrite A in Wk. pose proof (stays_step L M T anch stop v F rules table_ok version_ok s s1) as Sy.
  pose proof St as St0. unfold Version.step1 in St. rewrite E, A in St. simpl in St.
  destruct (inst_at B (sk s)) as [[i x o a|]|] eqn:N; try discriminate.
  - inversion St; subst s1; clear St. simpl in *.
    destruct (inst_args L M T anch v version_ok _ _ _ _ _ _ I E N) as [Ag Dl].
    pose proof (site_here v _ _ _ _ _ _ _ Dl E N) as Si.
    destruct (can_trap H o) eqn:Ct.
    + destruct (walk n (sb s) (S (sk s))) as [[l1 z1]|] eqn:Wk1; [|discriminate].
      inversion Wk; subst; clear Wk. exists n, l1. split; auto. split; auto. split; auto. right.
      exists i, B, x, o, a, (negb (excused L T H v voucher (sb s) (sk s) x o a)).
      split; auto. split; auto. split; auto. split; auto. split; auto.
      split; [exact (map_ext_in _ _ _ Ag)|]. split.
      * intros Ex Cm. apply negb_false_iff in Ex. unfold Traps.passes. rewrite E, N.
        eapply (excused_passes L M T H halt anch v voucher F FT table_ok version_ok); eauto.
        eapply (calm_flags L M T H halt anch stop v F rules FT table_ok version_ok args w); eauto.
      * intros y o' a' Sy' Ny Av.
        destruct (Sy _ _ _ I St0 Av Sy') as [G|[B' [i' [E' [N' _]]]]]; auto.
        exfalso. assert (B' = B) by congruence. subst. rewrite N in N'. congruence.
    + exists n, l. split; auto. split; auto. split; auto. left. split; auto. split.
      { unfold Traps.passes. rewrite E, N. now apply (can_ok _ _ _ FT). }
      intros y o' a' Sy' Ct' Av.
      destruct (Sy _ _ _ I St0 Av Sy') as [G|[B' [i' [E' [N' _]]]]]; auto. exfalso.
      assert (B' = B) by congruence. subst. rewrite N in N'. inversion N'; subst.
      congruence.
  - destruct (taken M (lt B) (se s)) as [e|] eqn:Tk; [|discriminate].
    destruct (one_way (live_edges (lt B))) as [[e0 es]|] eqn:Ow; [|discriminate].
    simpl in Wk. destruct (one_way_in _ _ _ Ow) as [Le Same].
    pose proof N as N0. apply inst_none in N0. assert (Kl: sk s = bn B) by lia.
    destruct (taken_edge L M T anch v F table_ok version_ok s B e I E Kl Tk) as [Ie _].
    assert (Sb: sb s1 = dst e0 /\ sk s1 = 0 /\ sw s1 = sw s /\ str s1 = str s).
    { rewrite <- (Same e Ie). unfold Version.enter in St.
      destruct (blk_at v (dst e)); [|discriminate]. inversion St; subst. auto. }
    destruct Sb as [Sb [Sk [Sw Sr]]]. exists n, l. split; [now rewrite Sb, Sk|].
    split; auto. split; auto. left. split; auto. split; [unfold Traps.passes; now rewrite E, N|].
    intros y o a Si _ Av.
    destruct (Sy _ _ _ I St0 Av Si) as [G|[B' [i' [E' [N' _]]]]]; auto.
    exfalso. assert (B' = B) by congruence. subst. congruence.
Qed.

(** A run along a way executes the operations that are listed. [tr] are those that are open, with
    their operands. *)
Lemma track g s : nreach g s -> forall n l z, Inv g -> walk n (sb g) (sk g) = Some (l, z) ->
  exists m l1 l2 tr, walk m (sb s) (sk s) = Some (l2, z) /\ l = l1 ++ l2 /\ map fst tr = opens l1 /\
  (forall old, NoDup (map fst old ++ map fst l1) -> lists g old -> lists s (old ++ tr)) /\
  (forall y o a, ~ In y (map fst l1) -> site_of v y = Some (o, a) -> can_trap H o = true ->
    availb v y (sb s) (sk s) = true ->
    availb v y (sb g) (sk g) = true /\ contents s a = contents g a) /\
  (calm start g -> match first_trap (sw g) tr with
    | None => calm g s
    | Some (o, vs) => exists s1, calm g s1 /\ traps s1 o vs /\ sw s1 = sw g /\ str s1 = str g
    end) /\
  (at_anchor s = true -> calm g s -> first_trap (sw g) tr = None).
Proof.
  induction 1 as [g|g g1 s A St Ng IH]; intros n l z I Wk.
  - exists n, [], l, []. split; auto. split; auto. split; auto. split; [|split; [auto|split; auto]].
    + intros old _ Ls. now rewrite app_nil_r.
    + intros _. constructor.
  - destruct (walk_step n g g1 l z I A St Wk) as [n1 [l0 [Wk1 [Sw [Sr Cases]]]]].
    pose proof (inv_step L M T anch stop v F rules table_ok version_ok _ _ I St) as I1.
    destruct (IH _ _ _ I1 Wk1) as [m [l1 [l2 [tr [Wk2 [El [Mt [Ls [Kp [Cm Back]]]]]]]]]].
    rewrite Sw in Cm, Back. destruct Cases as [[-> [Ps Q]]|Risky].
    + exists m, l1, l2, tr. split; auto. split; auto. split; auto. split; [|split; [|split]].
      * intros old Nd Lg. apply Ls; auto. intros y o vs Iy.
        destruct (Lg y o vs Iy) as [a [Si [Ct Ca]]]. exists a. split; auto. split; auto.
        intro Av. destruct (Q _ _ _ Si Ct Av) as [Av' ->]. auto.
      * intros y o a Ni Si Ct Av. destruct (Kp y o a Ni Si Ct Av) as [Av1 ->]. eauto.
      * intro Cg. assert (Cg1: calm start g1) by (eapply CS; eauto).
        assert (One: calm g g1) by (eapply CS; [constructor| |]; eauto).
        specialize (Cm Cg1). destruct (first_trap (sw g) tr) as [[o vs]|].
        -- destruct Cm as [s1 [C1 [T1 [W1 R1]]]]. exists s1.
           split; [eapply calm_trans; eauto|]. split; auto. split; congruence.
        -- eapply calm_trans; eauto.
      * intros As Cs. apply Back; auto. destruct (calm_first _ _ _ _ _ _ _ _ _ Cs)
          as [->|[g2 [_ [St2 C2]]]]; [congruence|]. now replace g1 with g2 by congruence.
    + destruct Risky as [i [B [x [o [a [b [E [N [-> [Si [Ct [Ec [Ex Q]]]]]]]]]]]]].
      set (ev := (x, (o, map (se g) a))).
      assert (Hb: passes g <-> halt o (map (se g) a) (sw g) = false)
        by (unfold Traps.passes; rewrite E, N; tauto).
      assert (Tr: halt o (map (se g) a) (sw g) = true -> traps g o (map (se g) a))
        by (intro Ht; exists B, i, x, a; auto).
      exists m, ((x, b) :: l1), l2, (if b then ev :: tr else tr). split; auto.
      split; [now rewrite El|]. split; [unfold opens in *; simpl; destruct b; simpl; congruence|].
      split; [|split; [|split]].
      * intros old Nd Lg. simpl in Nd.
        assert (Nd1: NoDup ((map fst old ++ [x]) ++ map fst l1)) by (now rewrite <- app_assoc).
        assert (Nx: ~ In x (map fst old)).
        { apply NoDup_remove_2 in Nd. intro Ix. apply Nd. apply in_or_app. now left. }
        assert (Lo: lists g1 old).
        { intros y o' vs Iy. destruct (Lg y o' vs Iy) as [a' [Si' [Ct' Ca]]]. exists a'.
          split; auto. split; auto. intro Av.
          destruct (Q y o' a' Si') as [Av' ->]; auto. intros ->. apply Nx.
          change x with (fst (x, (o', vs))). now apply in_map. }
        destruct b.
        -- change (old ++ ev :: tr) with (old ++ [ev] ++ tr). rewrite app_assoc. apply Ls.
           ++ rewrite map_app. exact Nd1.
           ++ intros y o' vs Iy. apply in_app_or in Iy.
              destruct Iy as [Iy|[Iy|[]]]; [now apply Lo|].
              inversion Iy; subst. exists a. auto.
        -- apply Ls; auto. now apply NoDup_remove_1 in Nd.
      * intros y o' a' Ni Si' Ct' Av. simpl in Ni. destruct (Kp y o' a') as [Av1 ->]; auto.
        apply (Q y o' a'); auto.
      * intro Cg. destruct (halt o (map (se g) a) (sw g)) eqn:Ht.
        -- destruct b; simpl.
           ++ rewrite Ht. exists g. split; [constructor|]. auto.
           ++ exfalso. apply Ex in Cg; auto. apply Hb in Cg. congruence.
        -- assert (Ps: passes g) by now apply Hb.
           assert (Cg1: calm start g1) by (eapply CS; eauto).
           assert (One: calm g g1) by (eapply CS; [constructor| |]; eauto).
           assert (Rest: match first_trap (sw g) tr with
             | None => calm g s
             | Some (o', vs) => exists s1, calm g s1 /\ traps s1 o' vs /\ sw s1 = sw g /\
               str s1 = str g
             end).
           { specialize (Cm Cg1). destruct (first_trap (sw g) tr) as [[o' vs]|].
             - destruct Cm as [s1 [C1 [T1 [W1 R1]]]]. exists s1.
               split; [eapply calm_trans; eauto|]. split; auto. split; congruence.
             - eapply calm_trans; eauto. }
           destruct b; simpl; [rewrite Ht|]; exact Rest.
      * intros As Cs. destruct (calm_first _ _ _ _ _ _ _ _ _ Cs)
          as [->|[g2 [Ps [St2 C2]]]]; [congruence|]. replace g2 with g1 in C2 by congruence.
        apply Hb in Ps. destruct b; simpl; [rewrite Ps|]; auto.
Qed.
(** Where a way ends. *)
Lemma walk_end s : Inv s -> at_anchor s = true -> walk 1 (sb s) (sk s) = Some ([], (sb s, sk s)).
Proof.
  intros I A. destruct (inv_at _ _ _ _ _ I) as [B [E _]]. unfold Paths.at_anchor in A. simpl.
  rewrite E in *. now rewrite A.
Qed.
End Walk.
