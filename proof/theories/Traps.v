(** Traps: runs of one version in which an operation that traps ends the run.

    An operation that may trap is *excused* if constant operands exclude a trap, or if an earlier
    one vouches for it: one that is available, on the same address or on constants that tell. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.

(** What the checker knows of traps. [vouch o o' = Some n]: where [o] has not trapped, [o'] does not
    trap later with the same first [n] operands. [vouch_at o o' ks ks']: nor does [o'] on operands
    with these constants, after [o] on operands with those. *)
Record TrapLang (C op : Type) := {
  can_trap : op -> bool;
  safe : op -> list (option C) -> bool;
  vouch : op -> op -> option nat;
  vouch_at : op -> op -> list (option C) -> list (option C) -> bool
}.
Arguments can_trap {C op}. Arguments safe {C op}. Arguments vouch {C op}. Arguments vouch_at {C op}.
(** Operand by operand, the contents are those of the constants that are known. *)
Definition known {C V} (val : C -> V) (ks : list (option C)) (vs : list V) : Prop :=
  Forall2 (fun k x => match k with Some c => x = val c | None => True end) ks vs.
(** [halt o vs w]: the operation traps on these operands in this world. The sizes of memories and
    tables are part of the world, and never shrink. *)
Record TrapFaithful {C op V W} (H : TrapLang C op) (M : Sem C op V W)
  (halt : op -> list V -> W -> bool) : Prop := {
  can_ok : forall o vs w, can_trap H o = false -> halt o vs w = false;
  safe_ok : forall o ks vs w, safe H o ks = true -> known (val M) ks vs -> halt o vs w = false;
  vouch_ok : forall o o' n vs vs' w, vouch H o o' = Some n -> firstn n vs = firstn n vs' ->
    halt o vs w = false -> halt o' vs' w = false;
  vouch_at_ok : forall o o' ks ks' vs vs' w, vouch_at H o o' ks ks' = true ->
    known (val M) ks vs -> known (val M) ks' vs' -> halt o vs w = false -> halt o' vs' w = false;
  halt_later : forall o vs e us w, halt o vs w = false ->
    halt o vs (fst (effsem M e us w)) = false
}.

Section Traps.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variable anch : nat -> bool.

Section Version.
Variable stop : nat -> bool.
Variable v : version op.
(** Claimed: a value whose operation vouches for that of another. *)
Variable voucher : nat -> nat.
Notation D := (D M T).
Notation vcl := (vcl T v).
Notation step1 := (step1 L M T anch stop v).
Notation reach := (reach L M T anch stop v).
Notation nreach := (nreach L M T anch stop v).
Notation start := (start M T v).
Notation Inv := (Inv L M T v).

(** ** The check of one version *)
Definition operands_known (a : list nat) : list (option C) := map (fun y => constant L T (vcl y)) a.
Definition vouched (b k x : nat) (o : op) (a : list nat) : bool :=
  let y := voucher x in
  availb v y b k &&
  match site_of v y with
  | Some (o', a') =>
    match vouch H o' o with
    | Some n => nats_eqb (map vcl (firstn n a')) (map vcl (firstn n a))
    | None => false
    end || vouch_at H o' o (operands_known a') (operands_known a)
  | None => false
  end.
Definition excused (b k x : nat) (o : op) (a : list nat) : bool :=
  negb (can_trap H o) || safe H o (operands_known a) || vouched b k x o a.

(** ** Real runs *)
(** The instruction at a state does not trap. *)
Definition passes (s : st V W) : Prop :=
  match blk_at v (sb s) with
  | Some B => match inst_at B (sk s) with
              | Some (IPure _ _ o a) => halt o (map (se s) a) (sw s) = false | _ => True end
  | None => True
  end.
Inductive calm (s0 : st V W) : st V W -> Prop :=
| C0 : calm s0 s0
| CS s s' : calm s0 s -> passes s -> step1 s = Some s' -> calm s0 s'.
Lemma calm_reach s0 s : calm s0 s -> reach s0 s.
Proof. induction 1; [constructor|]. econstructor; eauto. Qed.
Lemma calm_came s0 s : calm s0 s -> s = s0 \/ exists s', calm s0 s' /\ step1 s' = Some s.
Proof. destruct 1; eauto. Qed.
(** Runs are deterministic. *)
Lemma calm_first a b : calm a b -> b = a \/
  exists a', passes a /\ step1 a = Some a' /\ calm a' b.
Proof.
  induction 1 as [|s s' Rn IH Ps St]; auto. right. destruct IH as [->|[a' [Pa [Sa Ra]]]].
  - exists s'. repeat split; auto. constructor.
  - exists a'. repeat split; auto. eapply CS; eauto.
Qed.
Lemma calm_either a b c : calm a b -> calm a c -> calm b c \/ calm c b.
Proof.
  intros Rb Rc. induction Rb as [|s s' Rs IH Ps St]; auto. destruct IH as [G|G].
  - destruct (calm_first _ _ G) as [->|[s1 [P1 [S1 R1]]]].
    + right. eapply CS; [constructor| |]; eauto.
    + left. replace s' with s1 by congruence. exact R1.
  - right. eapply CS; eauto.
Qed.
Lemma calm_trans a b c : calm a b -> calm b c -> calm a c.
Proof. intros A G. induction G; auto. eapply CS; eauto. Qed.
(** The operation that traps where a run ends, and its operands. A load has memory among them. *)
Definition traps (s : st V W) (o : op) (vs : list V) : Prop :=
  exists B i x y, blk_at v (sb s) = Some B /\ inst_at B (sk s) = Some (IPure i x o y) /\
  vs = map (se s) y /\ halt o vs (sw s) = true.
Lemma traps_passes s o vs : traps s o vs -> ~ passes s.
Proof.
  intros [B [i [x [y [E [N [-> Ht]]]]]]] Ps. unfold passes in Ps. rewrite E, N in Ps.
  congruence.
Qed.
(** A run that ends at a trap has one end. *)
Lemma traps_once s0 a b o vs o' vs' : calm s0 a -> calm s0 b -> traps a o vs -> traps b o' vs' ->
  a = b /\ o = o' /\ vs = vs'.
Proof.
  intros Ca Cb Ta Tb. assert (Eq: a = b).
  { destruct (calm_either _ _ _ Ca Cb) as [G|G];
      destruct (calm_first _ _ G) as [Q|[s1 [P1 _]]]; auto.
    - now destruct (traps_passes _ _ _ Ta).
    - now destruct (traps_passes _ _ _ Tb). }
  subst b. split; auto. destruct Ta as [B [i [x [y [E [N [-> _]]]]]]].
  destruct Tb as [B' [i' [x' [y' [E' [N' [-> _]]]]]]].
  assert (B' = B) by congruence. subst. rewrite N in N'. now inversion N'.
Qed.
(** What has executed has not trapped, and would not trap now. *)
Definition flags (s : st V W) : Prop := forall y o a, availb v y (sb s) (sk s) = true ->
  site_of v y = Some (o, a) -> halt o (map (fun z => D (ss s) (vcl z)) a) (sw s) = false.

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis table_ok : chk_table L T = true.
Hypothesis version_ok : chk_version L T anch v = true.

Lemma inst_args s B i x o a : Inv s -> blk_at v (sb s) = Some B ->
  inst_at B (sk s) = Some (IPure i x o a) ->
  (forall z, In z a -> se s z = D (ss s) (vcl z)) /\ dl v x = (sb s, S (sk s)).
Proof.
  intros I E N. destruct (block_ok L T anch v version_ok _ _ (inv_live _ _ _ _ _ I) E)
    as [_ [_ [BI _]]].
  pose proof (BI _ _ N) as Ci. split.
  - intros z Hz. apply (inv_right _ _ _ _ _ I). unfold chk_inst in Ci.
    apply andb_true_iff in Ci. destruct Ci as [Ci _]. apply andb_true_iff in Ci.
      destruct Ci as [Ci _].
    apply andb_true_iff in Ci. destruct Ci as [Ci _]. rewrite forallb_forall in Ci. auto.
  - eapply (defs_at L T anch v version_ok); eauto using inv_live. now left.
Qed.
(** A value that is available behind a step was available before it, and its operands keep their
    contents; or the step executes it. *)
Definition contents (s : st V W) (a : list nat) : list V := map (fun z => D (ss s) (vcl z)) a.
Lemma stays_step s s' y o a : Inv s -> step1 s = Some s' -> availb v y (sb s') (sk s') = true ->
  site_of v y = Some (o, a) ->
  (availb v y (sb s) (sk s) = true /\ contents s' a = contents s a) \/
  exists B i, blk_at v (sb s) = Some B /\ inst_at B (sk s) = Some (IPure i y o a) /\
    contents s' a = map (se s) a.
Proof.
  intros I St A Si. pose proof (inv_live _ _ _ _ _ I) as Lb. unfold Version.step1 in St.
  destruct (blk_at v (sb s)) as [B|] eqn:E; [|discriminate].
  destruct (is_anch anch B (sk s) && stop _); [discriminate|].
  destruct (inst_at B (sk s)) as [[i x o1 a1|i o1 a1 r]|] eqn:N.
  - inversion St; subst; clear St. simpl in *.
    destruct (avail_back v _ _ _ _ _ Lb E N A) as [Iy|[_ A']]; [|left; split; auto].
    simpl in Iy. destruct Iy as [<-|[]]. destruct (inst_args _ _ _ _ _ _ I E N) as [Ag Dl].
    rewrite (site_here v _ _ _ _ _ _ _ Dl E N) in Si. inversion Si; subst o a.
    right. exists B, i. split; auto. split; auto. symmetry. exact (map_ext_in _ _ _ Ag).
  - destruct (effsem M o1 (map (se s) a1) (sw s)) as [w' rs] eqn:Es. inversion St; subst; clear St.
    simpl in *. destruct (avail_back v _ _ _ _ _ Lb E N A) as [Iy|[_ A']].
    + exfalso. simpl in Iy.
      rewrite (site_none v _ _ _ _ (defs_at L T anch v version_ok _ _ _ _ _ Lb E N Iy) E) in Si;
        [discriminate|]. now rewrite N.
    + left. split; auto. apply map_ext_in. intros z Hz. simpl.
      apply (eff_stays L M T anch v F version_ok s B i o1 a1 r w' rs y); auto.
      intros l [_ As]. eauto.
  - destruct (taken M (lt B) (se s)) as [e|] eqn:Tk; [|discriminate].
    pose proof St as En. unfold Version.enter in En.
    destruct (blk_at v (dst e)) as [B'|] eqn:E'; [|discriminate].
    assert (Sb: sb s' = dst e /\ sk s' = 0) by (inversion En; subst; simpl; auto).
    destruct Sb as [Sb Sk]. rewrite Sb, Sk in A.
    destruct (in_dec Nat.eq_dec y (ps B')) as [Iy|NI].
    + exfalso. assert (Lb': lv v (dst e) = true).
      { rewrite <- Sb. apply (inv_live _ _ _ _ _ (inv_edge L M T anch v F rules table_ok version_ok
          s B e s' I E N Tk St)). }
      destruct (block_ok L T anch v version_ok _ _ Lb' E') as [Pl _].
      now rewrite (site_param v _ _ (Pl _ Iy)) in Si.
    + left. pose proof (fun c => edge_stays L M T anch v F table_ok version_ok s B e s' B' y c
        I E N Tk St E' A NI) as Stay. split; [apply (Stay 0)|].
      apply map_ext_in. intros z Hz. apply Stay. intros l [_ As]. eauto.
Qed.
Lemma flags_step s s' : Inv s -> flags s -> passes s -> step1 s = Some s' -> flags s'.
Proof.
  intros I Fl Ps St y o a A Si. change (halt o (contents s' a) (sw s') = false).
  assert (Nh: halt o (contents s' a) (sw s) = false).
  { destruct (stays_step _ _ _ _ _ I St A Si) as [[A' ->]|[B [i [E [N ->]]]]].
    - exact (Fl _ _ _ A' Si).
    - unfold passes in Ps. now rewrite E, N in Ps. }
  unfold Version.step1 in St. destruct (blk_at v (sb s)) as [B|]; [|discriminate].
  destruct (is_anch anch B (sk s) && stop _); [discriminate|].
  destruct (inst_at B (sk s)) as [[i x o1 a1|i o1 a1 r]|].
  - inversion St; subst. exact Nh.
  - pose proof (halt_later _ _ _ FT o (contents s' a) o1 (map (se s) a1) _ Nh) as Z.
    destruct (effsem M o1 (map (se s) a1) (sw s)) as [w' rs]. now inversion St; subst.
  - destruct (taken M (lt B) (se s)); [|discriminate]. unfold Version.enter in St.
    destruct (blk_at v (dst e)); [|discriminate]. inversion St; subst. exact Nh.
Qed.
Section Args.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity v.
Hypothesis args_ty : args_typed M T args.
Lemma calm_inv s : calm (start args w) s -> Inv s.
Proof.
  intro Cm. apply calm_reach in Cm.
  exact (version_sound L M T anch stop v F rules table_ok version_ok args w s args_ok args_ty Cm).
Qed.
Lemma calm_flags s : calm (start args w) s -> flags s.
Proof.
  induction 1 as [|s s' Cm IH Ps St].
  - intros y o a A Si. exfalso. simpl in A. pose proof (calm_inv _ (C0 _)) as I.
    destruct (avail_def v _ _ _ A) as [d [k [Dl [Df [Dm Lk]]]]].
    pose proof version_ok as VO. unfold chk_version, chk_first in VO.
    repeat (apply andb_true_iff in VO; destruct VO as [VO _]).
    assert (Dz: doms v 0 = [0]).
    { pose proof version_ok as VQ. unfold chk_version, chk_first in VQ. bools.
      match goal with Z : nats_eqb (doms v 0) [0] = true |- _ => now apply nats_eqb_ok in Z end. }
    rewrite Dz in Dm. destruct Dm as [<-|[]]. specialize (Lk eq_refl). assert (k = 0) by lia.
      subst k.
    now rewrite (site_param v _ _ Dl) in Si.
  - eapply flags_step; eauto. now apply calm_inv.
Qed.
(** An excused operation does not trap. *)
Lemma excused_passes s B i x o a : Inv s -> flags s -> blk_at v (sb s) = Some B ->
  inst_at B (sk s) = Some (IPure i x o a) -> excused (sb s) (sk s) x o a = true ->
  halt o (map (se s) a) (sw s) = false.
Proof.
  intros I Fl E N Ex. destruct (inst_args _ _ _ _ _ _ I E N) as [Ag _]. unfold excused in Ex.
  assert (Kn: forall l, known (val M) (operands_known l) (map (fun y => D (ss s) (vcl y)) l)).
  { intro l. clear -table_ok F. unfold known, operands_known. induction l as [|y l IH]; simpl;
      constructor; auto. destruct (constant L T (vcl y)) as [c|] eqn:Cy; auto.
    now apply (constant_D L M T F table_ok). }
  apply orb_true_iff in Ex. destruct Ex as [Ex|Ex]; [apply orb_true_iff in Ex;
    destruct Ex as [Ex|Ex]|].
  - apply (can_ok _ _ _ FT). now apply negb_true_iff.
  - apply (safe_ok _ _ _ FT _ _ _ _ Ex). rewrite (map_ext_in _ _ _ Ag). apply Kn.
  - unfold vouched in Ex. apply andb_true_iff in Ex. destruct Ex as [Av Ex].
    destruct (site_of v (voucher x)) as [[o' a']|] eqn:Si; [|discriminate].
    pose proof (Fl _ _ _ Av Si) as Nh. apply orb_true_iff in Ex. destruct Ex as [Ex|Ex].
    + destruct (vouch H o' o) as [n|] eqn:Vo; [|discriminate]. apply nats_eqb_ok in Ex.
      apply (vouch_ok _ _ _ FT o' o n (map (fun z => D (ss s) (vcl z)) a') _ _ Vo); auto.
      rewrite (map_ext_in _ _ _ Ag), !firstn_map.
      transitivity (map (D (ss s)) (map vcl (firstn n a'))); [now rewrite map_map|].
      rewrite Ex, map_map. reflexivity.
    + apply (vouch_at_ok _ _ _ FT o' o _ _ (map (fun z => D (ss s) (vcl z)) a') _ _ Ex); auto.
      rewrite (map_ext_in _ _ _ Ag). apply Kn.
Qed.
End Args.
End Version.

End Traps.
