(** Traps: runs in which an operation that traps ends the run.

    Each operation without effect that may trap is *excused* or an anchor. It is excused if constant
    operands exclude a trap, or if an earlier one vouches for it: one that is available, on the same
    address. Both versions execute an anchor with the same operands, so they trap together. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.

(** What the checker knows of traps. [vouch o o' = Some n]: where [o] has not trapped, [o'] does not
    trap later with the same first [n] operands. *)
Record TrapLang (C op : Type) := {
  can_trap : op -> bool;
  safe : op -> list (option C) -> bool;
  vouch : op -> op -> option nat
}.
Arguments can_trap {C op}. Arguments safe {C op}. Arguments vouch {C op}.
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
Definition vouched (b k x : nat) (o : op) (a : list nat) : bool :=
  let y := voucher x in
  availb v y b k &&
  match site_of v y with
  | Some (o', a') =>
    match vouch H o' o with
    | Some n => nats_eqb (map vcl (firstn n a')) (map vcl (firstn n a))
    | None => false
    end
  | None => false
  end.
Definition excused (b k x : nat) (o : op) (a : list nat) : bool :=
  negb (can_trap H o) || safe H o (map (fun y => constant L T (vcl y)) a) || vouched b k x o a.
Definition chk_sites : bool :=
  below (fn v) (fun b => negb (lv v b) ||
    match blk_at v b with
    | None => true
    | Some B => below (bn B) (fun k =>
        match inst_at B k with
        | Some (IPure i x o a) => excused b k x o a || anch i
        | _ => true
        end)
    end).

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
(** What has executed has not trapped, and would not trap now. *)
Definition flags (s : st V W) : Prop := forall y o a, availb v y (sb s) (sk s) = true ->
  site_of v y = Some (o, a) -> halt o (map (fun z => D (ss s) (vcl z)) a) (sw s) = false.

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis table_ok : chk_table L T = true.
Hypothesis version_ok : chk_version L T anch v = true.
Hypothesis sites_ok : chk_sites = true.

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
Lemma flags_step s s' : Inv s -> flags s -> passes s -> step1 s = Some s' -> flags s'.
Proof.
  intros I Fl Ps St y o a A Si. pose proof (inv_live _ _ _ _ _ I) as Lb.
  unfold Version.step1 in St. unfold passes in Ps.
  destruct (blk_at v (sb s)) as [B|] eqn:E; [|discriminate].
  destruct (is_anch anch B (sk s) && stop _); [discriminate|].
  destruct (inst_at B (sk s)) as [[i x o1 a1|i o1 a1 r]|] eqn:N.
  - inversion St; subst; clear St. simpl in *.
    destruct (avail_back v _ _ _ _ _ Lb E N A) as [Iy|[_ A']]; [|now apply (Fl y)].
    simpl in Iy. destruct Iy as [<-|[]]. destruct (inst_args _ _ _ _ _ _ I E N) as [Ag Dl].
    rewrite (site_here v _ _ _ _ _ _ _ Dl E N) in Si. inversion Si; subst o a.
    rewrite <- (map_ext_in _ _ _ Ag). exact Ps.
  - destruct (effsem M o1 (map (se s) a1) (sw s)) as [w' rs] eqn:Es. inversion St; subst; clear St.
    simpl in *. destruct (avail_back v _ _ _ _ _ Lb E N A) as [Iy|[_ A']].
    + exfalso. simpl in Iy.
      rewrite (site_none v _ _ _ _ (defs_at L T anch v version_ok _ _ _ _ _ Lb E N Iy) E) in Si;
        [discriminate|]. now rewrite N.
    + assert (Eq: map (fun z => D (bindr v (combine r (pad L M o1 (length r) rs)) (ss s)) (vcl z))
      a =
        map (fun z => D (ss s) (vcl z)) a).
      { apply map_ext_in. intros z Hz.
        apply (eff_stays L M T anch v F version_ok s B i o1 a1 r w' rs y); auto.
        intros l [_ As]. eauto. }
      rewrite Eq. replace w' with (fst (effsem M o1 (map (se s) a1) (sw s))) by (now rewrite Es).
      apply (halt_later _ _ _ FT). now apply (Fl y).
  - destruct (taken M (lt B) (se s)) as [e|] eqn:Tk; [|discriminate].
    pose proof St as En. unfold Version.enter in En.
    destruct (blk_at v (dst e)) as [B'|] eqn:E'; [|discriminate].
    assert (Sb: sb s' = dst e /\ sk s' = 0 /\ sw s' = sw s) by (inversion En; subst; simpl; auto).
    destruct Sb as [Sb [Sk Sw]]. rewrite Sb, Sk in A. rewrite Sw.
    destruct (in_dec Nat.eq_dec y (ps B')) as [Iy|NI].
    + exfalso. assert (Lb': lv v (dst e) = true).
      { rewrite <- Sb. apply (inv_live _ _ _ _ _ (inv_edge L M T anch v F rules table_ok version_ok
          s B e s' I E N Tk St)). }
      destruct (block_ok L T anch v version_ok _ _ Lb' E') as [Pl _].
      now rewrite (site_param v _ _ (Pl _ Iy)) in Si.
    + assert (Eq: map (fun z => D (ss s') (vcl z)) a = map (fun z => D (ss s) (vcl z)) a).
      { apply map_ext_in. intros z Hz.
        destruct (edge_stays L M T anch v F table_ok version_ok s B e s' B' y (vcl z)
          I E N Tk St E' A NI)
          as [_ Q]. apply Q. intros l [_ As]. eauto. }
      rewrite Eq. apply (Fl y); auto.
      apply (edge_stays L M T anch v F table_ok version_ok s B e s' B' y (vcl y)
        I E N Tk St E' A NI).
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
  apply orb_true_iff in Ex. destruct Ex as [Ex|Ex]; [apply orb_true_iff in Ex;
    destruct Ex as [Ex|Ex]|].
  - apply (can_ok _ _ _ FT). now apply negb_true_iff.
  - apply (safe_ok _ _ _ FT _ _ _ _ Ex). clear -Ag table_ok F. unfold known.
    induction a as [|y a IH]; simpl; constructor.
    + destruct (constant L T (vcl y)) as [c|] eqn:Cy; auto. rewrite (Ag y) by now left.
      now apply (constant_D L M T F table_ok).
    + apply IH. intros z Hz. apply Ag. now right.
  - unfold vouched in Ex. apply andb_true_iff in Ex. destruct Ex as [Av Ex].
    destruct (site_of v (voucher x)) as [[o' a']|] eqn:Si; [|discriminate].
    destruct (vouch H o' o) as [n|] eqn:Vo; [|discriminate]. apply nats_eqb_ok in Ex.
    apply (vouch_ok _ _ _ FT o' o n (map (fun z => D (ss s) (vcl z)) a') _ _ Vo);
      [|exact (Fl _ _ _ Av Si)].
    rewrite (map_ext_in _ _ _ Ag), !firstn_map.
    transitivity (map (D (ss s)) (map vcl (firstn n a'))); [now rewrite map_map|].
    rewrite Ex, map_map. reflexivity.
Qed.
Lemma site_checked b k B i x o a : lv v b = true -> blk_at v b = Some B ->
  inst_at B k = Some (IPure i x o a) -> excused b k x o a || anch i = true.
Proof.
  intros Lb E N. pose proof (below_ok _ _ sites_ok _ (blk_lt v _ _ E)) as Q. simpl in Q.
  rewrite Lb, E in Q. simpl in Q. pose proof (below_ok _ _ Q _ (inst_some _ _ _ N)) as Z.
  simpl in Z. now rewrite N in Z.
Qed.
(** A real run reaches the next anchor: nothing traps on the way. *)
Lemma calm_on g e : calm (start args w) g -> nreach g e -> calm (start args w) e.
Proof.
  intros Cg Ne. induction Ne as [|s s1 e A St Ne IH]; auto. apply IH. eapply CS; eauto.
  pose proof (calm_inv _ Cg) as I. unfold passes. unfold at_anchor in A.
  destruct (inv_at _ _ _ _ _ I) as [B [E K]]. rewrite E in *.
  destruct (inst_at B (sk s)) as [[i x o a|i o a r]|] eqn:N; auto.
  unfold is_anch in A. rewrite N in A. simpl in A.
  pose proof (site_checked _ _ _ _ _ _ _ (inv_live _ _ _ _ _ I) E N) as Q. rewrite A,
    orb_false_r in Q.
  eapply excused_passes; eauto. now apply calm_flags.
Qed.
End Args.
End Version.

(** ** Both versions *)
Section Pair.
Variables (p q : version op) (K : claims).
Variables (vp vq : nat -> nat).
Notation stop := (stopped K).
Notation start := (start M T).
(** At an anchor without effect that may trap, both versions have equal operands. *)
Definition chk_trap_anchor (a : nat) : bool :=
  let (pp, pq) := pos K a in
  match blk_at p (fst pp), blk_at q (fst pq) with
  | Some Bp, Some Bq =>
    match inst_at Bp (snd pp), inst_at Bq (snd pq) with
    | Some (IPure _ x o y), Some (IPure _ x' o' y') =>
      (excused p vp (fst pp) (snd pp) x o y && excused q vq (fst pq) (snd pq) x' o' y') ||
      same_ops T p q K a y y'
    | _, _ => true
    end
  | _, _ => true
  end.
Definition chk_traps : bool :=
  chk_sites p vp && chk_sites q vq &&
  below (nids K) (fun a => negb (reached K a) || stop a || chk_trap_anchor a).

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis pair_ok : chk_pair L T anch p q K = true.
Hypothesis traps_ok : chk_traps = true.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
Let tok : chk_table L T = true := table_ok L T anch p q K pair_ok.
Let okp : chk_version L T anch p = true := okp L T anch p q K pair_ok.
Let okq : chk_version L T anch q = true := okq L T anch p q K pair_ok.
Let argsq : length args = arity q := args_okq L T anch p q K pair_ok args args_ok.
Notation Gap := (Gap L M T anch p q K args w).
Notation calmp := (calm stop p (start p args w)).
Notation calmq := (calm stop q (start q args w)).

Lemma sites_p : chk_sites p vp = true.
Proof. unfold chk_traps in traps_ok. bools. auto. Qed.
Lemma sites_q : chk_sites q vq = true.
Proof. unfold chk_traps in traps_ok. bools. auto. Qed.

(** If one version passes an anchor, the other does. *)
Lemma anchor_passes sp sq a : Sync L M T anch p q K args w sp sq a -> stop a = false ->
  calmp sp -> calmq sq -> passes p sp -> passes q sq.
Proof.
  intros Sy St Cp Cq Ps. pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs Anc Id].
  pose proof (okanch L T anch p q K pair_ok _ Lt_a In_a St) as CA. unfold chk_anchor in CA.
  assert (CT: chk_trap_anchor a = true).
  { unfold chk_traps in traps_ok. apply andb_true_iff in traps_ok. destruct traps_ok as [_ Z].
    pose proof (below_ok _ _ Z _ Lt_a) as G. simpl in G. now rewrite In_a, St in G. }
  unfold chk_trap_anchor in CT. rewrite At in CA, CT. cbn [fst snd] in CA, CT.
  unfold passes in *. destruct (blk_at q (sb sq)) as [Bq|] eqn:Eq; auto.
  destruct (inst_at Bq (sk sq)) as [[i' x' o' y'|i' o' y' r']|] eqn:Nq; auto.
  destruct (blk_at p (sb sp)) as [Bp|] eqn:Ep; [|discriminate].
  apply andb_true_iff in CA. destruct CA as [_ CA].
  destruct (inst_at Bp (sk sp)) as [[i x o y|i o y r]|] eqn:Np; try discriminate.
  apply andb_true_iff in CA. destruct CA as [Eo _]. apply (op_eqb_ok _ _ F) in Eo. subst o'.
  pose proof (calm_inv stop p F rules tok okp args w args_ok args_ty _ Cp) as Ip.
  pose proof (calm_inv stop q F rules tok okq args w argsq args_ty _ Cq) as Iq.
  apply orb_true_iff in CT. destruct CT as [CT|CT].
  - apply andb_true_iff in CT. destruct CT as [_ Ex].
    eapply (excused_passes q vq F FT tok okq); eauto.
    eapply (calm_flags stop q F rules FT tok okq); eauto.
  - destruct (inst_args p okp _ _ _ _ _ _ Ip Ep Np) as [Agp _].
    destruct (inst_args q okq _ _ _ _ _ _ Iq Eq Nq) as [Agq _].
    assert (Ops: map (se sp) y = map (se sq) y') by (eapply same_ops_ok; eauto).
    now rewrite <- Ops, Ew.
Qed.
(** The lockstep of real runs. *)
Theorem lockstep_calm sp : calmp sp -> exists gp gq, Gap gp gq /\
  nreach L M T anch stop p gp sp /\ calmq gq.
Proof.
  induction 1 as [|s s' Cm [gp [gq [G [N Cq]]]] Ps St].
  - exists (start p args w), (start q args w). split; [|split; [constructor|constructor]].
    apply gap_start; auto.
  - destruct (at_anchor anch p s) eqn:A.
    + destruct (gap_sync L M T anch p q K F rules pair_ok args w args_ok args_ty _ _ G)
        as [ep [eq [a [Np [Nq Sy]]]]].
      assert (ep = s).
      { pose proof (nreach_on _ _ _ _ _ _ _ _ _ N Np (proj1 (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy)))
        as X.
        eapply nreach_anchor; eauto. }
      subst ep.
      destruct (sync_step L M T anch p q K F rules pair_ok args w args_ok args_ty _ _ _ _ Sy St)
        as [sq' [Sq G']].
      exists s', sq'. split; auto. split; [constructor|].
      pose proof (calm_on stop q vq F rules FT tok okq sites_q args w argsq args_ty _ _ Cq Nq)
        as Ceq.
      eapply CS; eauto. eapply anchor_passes; eauto.
      pose proof Sy as [_ _ _ _ _ _ _ _ _ [Anp _] Id]. unfold Version.step1 in St. unfold aid in Id.
      unfold at_anchor in Anp. destruct (blk_at p (sb s)) as [B|]; [|discriminate].
      rewrite Anp in St. simpl in St. destruct (stop (pid B (sk s))) eqn:Z; [discriminate|].
        congruence.
    + exists gp, gq. split; auto. split; auto. eapply nreach_step; eauto.
Qed.
(** ** Stopped anchors *)
Variables (past ahead : nat -> bool).
Hypothesis clean_ok : chk_clean L T anch stop p past ahead = true.
Lemma calm_past s : calm nowhere p (start p args w) s -> past (sb s) = true -> calmp s.
Proof.
  induction 1 as [|s s' Cm IH Ps St]; intro Pa; [constructor|].
  pose proof (calm_inv nowhere p F rules tok okp args w args_ok args_ty _ Cm) as I.
  destruct (inv_at _ _ _ _ _ I) as [B [E K0]].
  destruct (clean_at L T anch stop p past ahead clean_ok _ _ (inv_live _ _ _ _ _ I) E) as [Q [U _]].
  assert (Pb: past (sb s) = true).
  { destruct (step_where L M T anch p F tok okp _ _ _ I E St) as [Q'|[e [Ie Q']]]; [congruence|].
    destruct (past (sb s)) eqn:Z; auto. rewrite Q' in Pa. now rewrite (U eq_refl e Ie) in Pa. }
  eapply CS; eauto. eapply (quiet_step L M T anch stop p); eauto.
Qed.
Lemma calm_free v s0 s : calm stop v s0 s -> calm nowhere v s0 s.
Proof. induction 1; [constructor|]. eapply CS; eauto. eapply stop_less; eauto. Qed.

(** Let the source version come to the source point without a trap. Then the target version comes to
    the landing point without a trap, in the same world and after the same effects, and firing gives
    the contents that it has there. *)
Theorem landing_real (E : entry op) sp : chk_entry L T anch p q K E = true ->
  past (fst (src E)) = true -> calm nowhere p (start p args w) sp -> (sb sp, sk sp) = src E ->
  exists sq, calm nowhere q (start q args w) sq /\ (sb sq, sk sq) = tgt E /\ sw sq = sw sp /\
  str sq = str sp /\
  forall env, (forall x, mem x (requires E) = true -> env x = se sp x) ->
  forall x o, get x (assigns E) = Some o -> fire M E env o = se sq x.
Proof.
  intros Ce Pa Cm At. rewrite <- At in Pa. cbn [fst] in Pa. pose proof (calm_past _ Cm Pa) as Cp.
  destruct (lockstep_calm _ Cp) as [gp [gq [G [N Cq]]]].
  destruct (entry_from L M T anch p q K F rules pair_ok args w args_ok args_ty calmq E sp gp gq)
    as [sq [Rq [Aq [Ew [Et [_ Right]]]]]]; auto.
  - apply calm_reach.
  - apply calm_came.
  - now apply calm_reach in Cp.
  - intros e Ne. eapply (calm_on stop q vq F rules FT tok okq sites_q args w argsq args_ty); eauto.
  - exists sq. split; [now apply calm_free|]. auto.
Qed.
End Pair.
End Traps.
Print Assumptions landing_real.
