(** Copies: a version that consists of the code of others.

    A block of the copy belongs to an *instance*, and begins at a place of the code of which the
    instance is a copy. A jump in the place of a call leads to an instance for that call, and a jump
    in the place of a return leads behind it. So a run of the copy is a stack of activations of the
    originals ([copy_out]): each but the innermost waits at its call, and the next is a run of the
    function that is called, with the arguments of the call, in the world at the call. And a run of
    an original whose calls return is followed by the copy ([copy_in]). *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Traps Real.

(** A version with its table and its anchors. *)
Record body (op R : Type) := Body { ctab : table op R; canc : nat -> bool; cver : version op }.
Arguments Body {op R}. Arguments ctab {op R}. Arguments canc {op R}. Arguments cver {op R}.
(** What is claimed of a copy. Places are a block and the instructions passed in it. *)
Record copies (op R : Type) := Copies {
  cn : nat;                                (* the number of instances; 0 is the function itself *)
  orig : nat -> body op R;                 (* by instance: what it is a copy of *)
  fnc : nat -> nat;                        (* by instance: its function *)
  caller : nat -> nat * (nat * nat);       (* by instance: the instance and place of its call *)
  begins : nat -> nat * (nat * nat);       (* by block of the copy: its instance, and the place *)
  naming : nat -> nat -> nat;               (* by instance: the name of a value of the original *)
  owner : nat -> nat * nat                 (* by name: the instance, and the value *)
}.
Arguments Copies {op R}. Arguments cn {op R}. Arguments orig {op R}. Arguments fnc {op R}.
Arguments caller {op R}. Arguments begins {op R}. Arguments naming {op R}. Arguments owner {op R}.

Section Copy.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
(** The function that a call calls, and the terminators that return. *)
Variables (callee : op -> option nat) (returns : op -> bool).
Variable I : body op R.
Variable K : copies op R.
Notation ov id := (cver (orig K id)).
Notation ot id := (ctab (orig K id)).

(** ** The check *)
Definition at_place (b : nat) (x : nat * (nat * nat)) : bool :=
  (fst (begins K b) =? fst x) && posb (snd (begins K b)) (snd x).
(** Whether values of the copy are those of these names. *)
Definition names (id : nat) (ys xs : list nat) : bool :=
  all2 (fun y x => naming K id y =? x) ys xs.
(** As [names], for values that are defined: their names are names of no other value. *)
Definition owns (id : nat) (ys xs : list nat) : bool :=
  names id ys xs &&
  forallb (fun y => (fst (owner K (naming K id y)) =? id) &&
    (snd (owner K (naming K id y)) =? y)) ys.
Definition chk_same (id : nat) (i i0 : inst op) : bool :=
  match i, i0 with
  | IPure _ x o a, IPure _ y o0 b => op_eqb L o o0 && names id b a && owns id [y] [x]
  | IEff _ o a r, IEff _ o0 b r0 => op_eqb L o o0 && names id b a && owns id r0 r
  | _, _ => false
  end.
Definition chk_way (id : nat) (e e0 : edge) : bool :=
  at_place (dst e) (id, (dst e0, 0)) && names id (ea e0) (ea e) &&
  match blk_at (cver I) (dst e), blk_at (ov id) (dst e0) with
  | Some B, Some B0 => owns id (ps B0) (ps B)
  | _, _ => false
  end.
(** The types of arguments. *)
Definition chk_types (id id' : nat) (a : list nat) : bool :=
  below (tn (ot id')) (fun t =>
    match tk (tg (ot id') t) with
    | KArg m => match nth_error a m with
                | Some x => tty (ot id) (vcl (ot id) (ov id) x) =? ty (tg (ot id') t)
                | None => true
                end
    | _ => true
    end).
Definition chk_into (id : nat) (at_ : nat * nat) (o : op) (a : list nat) (e : edge) : bool :=
  let id' := fst (begins K (dst e)) in
  (id <? id') && (id' <? cn K) && at_place (dst e) (id', (0, 0)) &&
  (fst (caller K id') =? id) && posb (snd (caller K id')) at_ &&
  match callee o with Some f => f =? fnc K id' | None => false end &&
  names id a (ea e) &&
  match blk_at (cver I) (dst e), blk_at (ov id') 0 with
  | Some B, Some B0 => owns id' (ps B0) (ps B) && (length a =? length (ps B0))
  | _, _ => false
  end && chk_types id id' a.
(** The types of results. *)
Definition chk_results (id : nat) (o : op) (l : list nat) : bool :=
  below (length l) (fun n => tty (ot id) (vcl (ot id) (ov id) (nth n l 0)) =? ety L o n).
Definition chk_back (id : nat) (l : list nat) (e : edge) : bool :=
  let (c, at_) := caller K id in
  (c <? id) && at_place (dst e) (c, (fst at_, S (snd at_))) && names id l (ea e) &&
  match blk_at (ov c) (fst at_) with
  | Some B0 =>
    match inst_at B0 (snd at_) with
    | Some (IEff _ o _ r) =>
      match callee o with Some f => f =? fnc K id | None => false end && chk_results id o l &&
      match blk_at (cver I) (dst e) with Some B => owns c r (ps B) | None => false end
    | _ => false
    end
  | None => false
  end.
Definition chk_end (id b k : nat) (B0 : blk op) (l : last op) : bool :=
  match inst_at B0 k with
  | Some (IEff _ o a _) => match les l with [e] => chk_into id (b, k) o a e | _ => false end
  | Some _ => false
  | None =>
    if (0 <? id) && returns (lo (lt B0)) then
      match les l with [e] => is_nil (les (lt B0)) && chk_back id (la (lt B0)) e | _ => false end
    else op_eqb L (lo l) (lo (lt B0)) && names id (la (lt B0)) (la l) &&
         all2 (chk_way id) (les l) (les (lt B0))
  end.
Definition chk_copy_block (b : nat) : bool :=
  negb (lv (cver I) b) ||
  match blk_at (cver I) b with
  | None => false
  | Some B =>
    let (id, at_) := begins K b in let (b0, k0) := at_ in
    (id <? cn K) &&
    match blk_at (ov id) b0 with
    | None => false
    | Some B0 =>
      below (bn B) (fun j => match inst_at B j, inst_at B0 (k0 + j) with
                             | Some i, Some i0 => chk_same id i i0 | _, _ => false end) &&
      chk_end id b0 (k0 + bn B) B0 (lt B)
    end
  end.
Definition chk_copy : bool :=
  (0 <? cn K) && at_place 0 (0, (0, 0)) &&
  match blk_at (cver I) 0, blk_at (ov 0) 0 with
  | Some B, Some B0 => owns 0 (ps B0) (ps B)
  | _, _ => false
  end && below (fn (cver I)) chk_copy_block.

(** ** What a call means *)
Notation calm c := (Traps.calm L M (ctab c) halt (canc c) nowhere (cver c)).
Notation stepc c := (step1 L M (ctab c) (canc c) nowhere (cver c)).
Notation startc c := (start M (ctab c) (cver c)).
Notation Invc c := (Inv L M (ctab c) (cver c)).
Definition good_code (c : body op R) : Prop := RulesHold L M (ctab c) /\
  chk_table L (ctab c) = true /\ chk_version L (ctab c) (canc c) (cver c) = true.
(** A call of the instance [id] with these operands: it stands in an original, and has as many
    operands as the callee has parameters, of their types. Without this, no machine whose results
    have types would do: a callee that returns its parameter returns contents of any type. *)
Definition has_call (v : version op) (o : op) : Prop :=
  exists b k B i a r, blk_at v b = Some B /\ inst_at B k = Some (IEff i o a r).
Definition a_call (id : nat) (o : op) (vs : list V) : Prop :=
  id < cn K /\ callee o = Some (fnc K id) /\ (exists c, c < cn K /\ has_call (ov c) o) /\
  length vs = arity (ov id) /\ args_typed M (ctab (orig K id)) vs.
(** Whether contents have the types of the results of a call. *)
Definition fits (o : op) (rs : list V) : Prop :=
  forall n c, nth_error rs n = Some c -> typed M (ety L o n) c.
(** A run of the callee that returns results of these types is what the call does. *)
Definition CallsMean : Prop := forall id o vs w e rop rs, a_call id o vs ->
  calm (orig K id) (startc (orig K id) vs w) e ->
  result (ov id) e rop rs -> returns rop = true -> fits o rs -> effsem M o vs w = (sw e, rs).
(** [fair] worlds remember that all calls of inlined functions so far have returned. *)
Definition CallsReturn (fair : W -> Prop) : Prop :=
  (forall o vs w, fair (fst (effsem M o vs w)) -> fair w) /\
  forall id o vs w, a_call id o vs -> fair (fst (effsem M o vs w)) ->
  exists e rop rs, calm (orig K id) (startc (orig K id) vs w) e /\ result (ov id) e rop rs /\
    returns rop = true /\ fits o rs.

Hypothesis F : Faithful L M.
Hypothesis good_I : good_code I.
Hypothesis good_orig : forall id, id < cn K -> good_code (orig K id).
Hypothesis copy_ok : chk_copy = true.

(** The contents of available values are those of their names. *)
Definition rel (id : nat) (s : st V W) (env : nat -> V) : Prop :=
  forall y, availb (ov id) y (sb s) (sk s) = true ->
  owner K (naming K id y) = (id, y) /\ se s y = env (naming K id y).
Record Matched (id : nat) (s t : st V W) : Prop := {
  mt_id : id < cn K;
  mt_at : exists k, begins K (sb t) = (id, (sb s, k)) /\ sk s = k + sk t;
  mt_w : sw t = sw s;
  mt_inv : Invc (orig K id) s;
  mt_copy : Invc I t;
  mt_rel : rel id s (se t)
}.
(** Only names of one instance have other contents. *)
Definition only (id : nat) (env env' : nat -> V) : Prop :=
  forall x, fst (owner K x) <> id -> env' x = env x.

Lemma at_place_ok b x : at_place b x = true -> begins K b = x.
Proof.
  unfold at_place. intro Q. apply andb_true_iff in Q. destruct Q as [Q1 Q2].
  apply Nat.eqb_eq in Q1. apply posb_ok in Q2. destruct (begins K b), x. simpl in *. congruence.
Qed.
Lemma names_ok id ys : forall xs, names id ys xs = true -> xs = map (naming K id) ys.
Proof.
  induction ys as [|y ys IH]; intros [|x xs] N; simpl in *; try discriminate; auto.
  apply andb_true_iff in N. destruct N as [N1 N2]. apply Nat.eqb_eq in N1. f_equal; auto.
Qed.
Lemma owns_ok id ys xs : owns id ys xs = true -> xs = map (naming K id) ys /\
  forall y, In y ys -> owner K (naming K id y) = (id, y).
Proof.
  unfold owns. intro O. apply andb_true_iff in O. destruct O as [N O].
  split; [now apply names_ok|]. rewrite forallb_forall in O. intros y Iy. apply O in Iy.
  bools. destruct (owner K (naming K id y)). simpl in *. congruence.
Qed.
Lemma rel_map id s env ys : rel id s env ->
  (forall y, In y ys -> availb (ov id) y (sb s) (sk s) = true) ->
  map env (map (naming K id) ys) = map (se s) ys.
Proof. intros Rl A. rewrite map_map. apply map_ext_in. intros y Iy. symmetry. now apply Rl, A. Qed.
Lemma start_parts : 0 < cn K /\ begins K 0 = (0, (0, 0)) /\ exists B B0,
  blk_at (cver I) 0 = Some B /\ blk_at (ov 0) 0 = Some B0 /\ owns 0 (ps B0) (ps B) = true.
Proof.
  unfold chk_copy in copy_ok. apply andb_true_iff in copy_ok. destruct copy_ok as [Q _].
  apply andb_true_iff in Q. destruct Q as [Q Ow]. apply andb_true_iff in Q. destruct Q as [Q At].
  apply Nat.ltb_lt in Q. apply at_place_ok in At. split; auto. split; auto.
  destruct (blk_at (cver I) 0) as [B|]; [|discriminate].
  destruct (blk_at (ov 0) 0) as [B0|]; [|discriminate]. eauto.
Qed.
Lemma block_parts id s t : Matched id s t -> exists B B0 k,
  blk_at (cver I) (sb t) = Some B /\ blk_at (ov id) (sb s) = Some B0 /\ sk t <= bn B /\
  sk s = k + sk t /\
  (forall j, j < bn B -> match inst_at B j, inst_at B0 (k + j) with
                         | Some i, Some i0 => chk_same id i i0 = true | _, _ => False end) /\
  chk_end id (sb s) (k + bn B) B0 (lt B) = true.
Proof.
  intros [Li [k [Bg Sk]] Ew Iv It Rl]. destruct (inv_at _ _ _ _ _ It) as [B [E Le]].
  unfold chk_copy in copy_ok. apply andb_true_iff in copy_ok. destruct copy_ok as [_ Q].
  pose proof (below_ok _ _ Q _ (blk_lt _ _ _ E)) as P. unfold chk_copy_block in P.
  rewrite (inv_live _ _ _ _ _ It), E, Bg in P. simpl in P. apply andb_true_iff in P.
  destruct P as [_ P]. destruct (blk_at (ov id) (sb s)) as [B0|] eqn:E0; [|discriminate].
  apply andb_true_iff in P. destruct P as [P1 P2]. exists B, B0, k. repeat split; auto.
  intros j Lj. pose proof (below_ok _ _ P1 _ Lj) as G. simpl in G.
  destruct (inst_at B j); [|discriminate]. destruct (inst_at B0 (k + j)); [auto|discriminate].
Qed.
Lemma step_c c s B : blk_at (cver c) (sb s) = Some B -> stepc c s =
  match inst_at B (sk s) with
  | Some (IPure i x o a) =>
    Some (St (sb s) (S (sk s)) (upd (se s) x (opsem M o (map (se s) a))) (sw s) (str s) (ss s))
  | Some (IEff i o a r) =>
    let (w', rs) := effsem M o (map (se s) a) (sw s) in
    let l := combine r (pad L M o (length r) rs) in
    Some (St (sb s) (S (sk s)) (assign l (se s)) w' (str s ++ [i]) (bindr (cver c) l (ss s)))
  | None => match taken M (lt B) (se s) with
            | Some e => enter (ctab c) (cver c) s e | None => None end
  end.
Proof. intro E. unfold step1. rewrite E. unfold nowhere. now rewrite andb_false_r. Qed.
Lemma inv_c c s s' : good_code c -> Invc c s -> stepc c s = Some s' -> Invc c s'.
Proof. intros [Rl [Tk Vk]] Iv St. eapply inv_step; eauto. Qed.

(** Bound values have the contents of their names. *)
Lemma assigned id ys xs (vs : list V) (env env' : nat -> V) (y : nat) :
  owns id ys xs = true -> length vs = length ys ->
  (~ In y ys -> owner K (naming K id y) = (id, y) /\ env y = env' (naming K id y)) ->
  owner K (naming K id y) = (id, y) /\
  assign (combine ys vs) env y = assign (combine xs vs) env' (naming K id y).
Proof.
  intros Ow Len Old. destruct (owns_ok _ _ _ Ow) as [-> Own].
  assert (Oy: owner K (naming K id y) = (id, y)).
  { destruct (in_dec Nat.eq_dec y ys); auto. now apply Old. }
  split; auto. unfold assign. clear Ow. revert vs Len Old Own.
  induction ys as [|z ys IH]; intros [|c vs] Len Old Own; simpl in *; try discriminate.
  - now apply Old.
  - destruct (z =? y) eqn:Q.
    + apply Nat.eqb_eq in Q. subst. now rewrite Nat.eqb_refl.
    + assert (Z: naming K id z =? naming K id y = false).
      { apply Nat.eqb_neq. intro X. apply Nat.eqb_neq in Q. apply Q.
        assert (owner K (naming K id z) = (id, z)) by auto. congruence. }
      rewrite Z. apply IH; auto. intro N. apply Old. apply Nat.eqb_neq in Q. tauto.
Qed.
Lemma assign_only id ys xs (vs : list V) (env : nat -> V) : owns id ys xs = true ->
  only id env (assign (combine xs vs) env).
Proof.
  intros Ow x Ox. destruct (owns_ok _ _ _ Ow) as [-> Own]. unfold assign.
  destruct (find _ _) as [[z c]|] eqn:Fd; auto. apply find_some in Fd. destruct Fd as [Iz Q].
  simpl in Q. apply Nat.eqb_eq in Q. subst z. apply in_combine_l in Iz. apply in_map_iff in Iz.
  destruct Iz as [y [<- Iy]]. rewrite (Own _ Iy) in Ox. simpl in Ox. congruence.
Qed.
Lemma pad_len o n (rs : list V) : length (pad L M o n rs) = n.
Proof. unfold pad. now rewrite map_length, seq_length. Qed.
Lemma pad_all o (rs : list V) : pad L M o (length rs) rs = rs.
Proof.
  unfold pad. apply nth_ext with (d := dflt M (ety L o 0)) (d' := dflt M (ety L o 0)).
  { now rewrite map_length, seq_length. }
  intros n Ln. rewrite map_length, seq_length in Ln.
  rewrite (nth_indep _ _ (nth 0 rs (dflt M (ety L o 0)))) by (now rewrite map_length, seq_length).
  rewrite (map_nth (fun i => nth i rs (dflt M (ety L o i)))), seq_nth by auto. simpl.
  now apply nth_indep.
Qed.

End Copy.
Arguments mt_id {C op R V W L M I K id s t}.
Arguments mt_at {C op R V W L M I K id s t}.
Arguments mt_w {C op R V W L M I K id s t}.
Arguments mt_inv {C op R V W L M I K id s t}.
Arguments mt_copy {C op R V W L M I K id s t}.
Arguments mt_rel {C op R V W L M I K id s t}.
