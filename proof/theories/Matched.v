(** Real runs of two versions: where one traps, the other traps by the same operation on the same
    operands, in the same world and after the same effects. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean.
From Osier Require Import Traps Walk Owed.

Section Matched.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variable anch : nat -> bool.
Variables (p q : version op) (K : claims) (X : owing).
Notation D := (D M T).
Notation stop := (stopped K).
Notation start := (start M T).
Notation nreach := (nreach L M T anch stop).
Notation at_anchor := (at_anchor anch).
Notation lists := (lists M T H).
Notation first_trap := (first_trap halt).
Notation owed := (owed X).
Notation walkp := (walk L T H anch p (by_p X) (steps_at_most X)).
Notation walkq := (walk L T H anch q (by_q X) (steps_at_most X)).

(** ** The check of an entry *)
(** What the target version may be ahead by is vouched for by the source version at the source
    point, or stands behind the landing point. *)
Definition chk_passed (E : entry op) : bool :=
  match walkp (fst (src E)) (snd (src E)), walkq (fst (tgt E)) (snd (tgt E)) with
  | Some (lp, ap), Some (lq, aq) =>
    match aid p (fst ap) (snd ap) with
    | Some a =>
      forallb (p_passed T H p q K X a ap lp) (came X a) &&
      forallb (fun y => inb y (map fst lq) || p_passed T H p q K X a ap lp y) (meets X a)
    | None => false
    end
  | _, _ => false
  end.

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis pair_ok : chk_pair L T anch p q K = true.
Hypothesis traps_ok : chk_traps L T H anch p q K X = true.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
Let tok : chk_table L T = true := table_ok L T anch p q K pair_ok.
Let okp : chk_version L T anch p = true := okp L T anch p q K pair_ok.
Let okq : chk_version L T anch q = true := okq L T anch p q K pair_ok.
Let argsq : length args = arity q := args_okq L T anch p q K pair_ok args args_ok.
Notation Gap := (Gap L M T anch p q K args w).
Notation Sync := (Sync L M T anch p q K args w).
Notation event := (@event op V).
Notation calm v := (calm L M T halt anch stop v).
Notation traps v := (traps halt v).
Notation passes v := (passes halt v).
Notation startp := (start p args w).
Notation startq := (start q args w).
Notation status := (status L M T halt anch q K args w).
Notation Ready := (Ready L M T H halt anch p q K X args w).
Notation Ways := (Ways L M T H halt anch p q K X args w).
Notation step v := (step1 L M T anch stop v).
Let ways_ok := ways_ok L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty.

Lemma at_anchor_ok a : a < nids K -> reached K a = true -> stop a = false ->
  chk_trap_anchor L T H p q K X a = true /\ chk_owed L T H anch p q K X a = true.
Proof.
  intros Lt In St. unfold chk_traps in traps_ok. apply andb_true_iff in traps_ok.
  destruct traps_ok as [_ Z]. pose proof (below_ok _ _ Z _ Lt) as G. simpl in G.
  rewrite In, St in G. simpl in G. now apply andb_true_iff in G.
Qed.
Lemma invp s : reach L M T anch stop p startp s -> Inv L M T p s.
Proof. exact (version_sound L M T anch stop p F rules tok okp args w s args_ok args_ty). Qed.
Lemma invq s : reach L M T anch stop q startq s -> Inv L M T q s.
Proof. exact (version_sound L M T anch stop q F rules tok okq args w s argsq args_ty). Qed.
Lemma not_owed a : owed a = false -> only_p X a = [] /\ only_q X a = [].
Proof.
  unfold Owed.owed. intro Ow. apply negb_false_iff, andb_true_iff in Ow.
  destruct Ow as [A B]. split; now apply is_nil_ok.
Qed.
(** If one version passes an anchor, the other does. *)
Lemma anchor_passes sp sq a : Sync sp sq a -> stop a = false -> calm p startp sp ->
  calm q startq sq -> passes p sp -> passes q sq.
Proof.
  intros Sy St Cp Cq Ps. pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs Anc Id].
  pose proof (okanch L T anch p q K pair_ok _ Lt_a In_a St) as CA. unfold chk_anchor in CA.
  destruct (at_anchor_ok a Lt_a In_a St) as [CT _].
  unfold chk_trap_anchor in CT. rewrite At in CA, CT. cbn [fst snd] in CA, CT.
  unfold Traps.passes in *. destruct (blk_at q (sb sq)) as [Bq|] eqn:Eq; auto.
  destruct (inst_at Bq (sk sq)) as [[i' x' o' y'|i' o' y' r']|] eqn:Nq; auto.
  destruct (blk_at p (sb sp)) as [Bp|] eqn:Ep; [|discriminate].
  apply andb_true_iff in CA. destruct CA as [_ CA].
  destruct (inst_at Bp (sk sp)) as [[i x o y|i o y r]|] eqn:Np; try discriminate.
  apply andb_true_iff in CA. destruct CA as [Eo _]. apply (op_eqb_ok _ _ F) in Eo. subst o'.
  pose proof (calm_inv L M T halt anch stop p F rules tok okp args w args_ok args_ty _ Cp) as Ip.
  pose proof (calm_inv L M T halt anch stop q F rules tok okq args w argsq args_ty _ Cq) as Iq.
  apply orb_true_iff in CT. destruct CT as [CT|CT].
  - apply andb_true_iff in CT. destruct CT as [_ Ex].
    eapply (excused_passes L M T H halt anch q (by_q X) F FT tok okq); eauto.
    eapply (calm_flags L M T H halt anch stop q F rules FT tok okq); eauto.
  - destruct (inst_args L M T anch p okp _ _ _ _ _ _ Ip Ep Np) as [Agp _].
    destruct (inst_args L M T anch q okq _ _ _ _ _ _ Iq Eq Nq) as [Agq _].
    assert (Ops: map (se sp) y = map (se sq) y')
      by (eapply (same_ops_ok L M T anch p q K pair_ok); eauto).
    now rewrite <- Ops, Ew.
Qed.
Lemma sync_live sp sq a sp' : Sync sp sq a -> step p sp = Some sp' -> stop a = false.
Proof.
  intros [_ _ _ _ _ _ _ _ _ [An _] Id] St. unfold step1 in St. unfold aid in Id.
  unfold Paths.at_anchor in An. destruct (blk_at p (sb sp)) as [B|]; [|discriminate].
  rewrite An in St. simpl in St. destruct (stop (pid B (sk sp))) eqn:Z; [discriminate|]. congruence.
Qed.
(** Over an edge, listed operations keep their operands. *)
Lemma lists_edge v s s' B l : chk_version L T anch v = true -> Inv L M T v s ->
  blk_at v (sb s) = Some B -> inst_at B (sk s) = None -> step v s = Some s' ->
  lists v s l -> lists v s' l.
Proof.
  intros Ok I E N St Ls y o vs Iy. destruct (Ls y o vs Iy) as [a [Si [Ct Ea]]]. exists a.
  split; auto. split; auto. intro Av.
  destruct (stays_step L M T anch stop v F rules tok Ok s s' y o a I St Av Si)
    as [[Av' ->]|[B' [i [E' [N' _]]]]]; auto. exfalso. congruence.
Qed.
Lemma edge_world v s s' B : blk_at v (sb s) = Some B -> inst_at B (sk s) = None ->
  step v s = Some s' -> sw s' = sw s /\ str s' = str s.
Proof.
  intros E N St. unfold step1 in St. rewrite E, N in St. destruct (_ && _); [discriminate|].
  destruct (taken M (lt B) (se s)); [|discriminate]. unfold enter in St.
  destruct (blk_at v (dst e)); [|discriminate]. inversion St; subst. auto.
Qed.
(** One anchor further. *)
Lemma anchor_step sp sq a sp' ep eq : Ready sp sq a ep eq -> step p sp = Some sp' ->
  (owed a = false -> calm p startp sp /\ passes p sp) ->
  exists sq', step q sq = Some sq' /\ Ways (rank_of X a) sp' sq' ep eq /\
  (owed a = true -> sw sp' = sw sp /\ str sp' = str sp /\
    exists B, blk_at p (sb sp) = Some B /\ inst_at B (sk sp) = None).
Proof.
  intros [Sy [lp [lq [Np [Nq [Lp Lq Ep Eq St]]]]]] Stp Ps.
  pose proof (sync_live _ _ _ _ Sy Stp) as Sa.
  destruct (sync_step L M T anch p q K F rules pair_ok args w args_ok args_ty _ _ _ _ Sy Stp)
    as [sq' [Stq G]].
  exists sq'. split; auto. pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs Anc Id].
  pose proof (invp _ Rp) as Ip. pose proof (invq _ Rq) as Iq.
  destruct (at_anchor_ok a Lt_a In_a Sa) as [_ Co]. unfold chk_owed in Co. rewrite At in Co.
  cbn [fst snd] in Co. unfold chk_behind in Co.
  destruct (blk_at p (sb sp)) as [Bp|] eqn:EBp; [|discriminate].
  destruct (blk_at q (sb sq)) as [Bq|] eqn:EBq; [|discriminate].
  destruct (inst_at Bp (sk sp)) as [ip|] eqn:EIp; destruct (inst_at Bq (sk sq)) as [iq|] eqn:EIq;
    try discriminate.
  - apply andb_true_iff in Co. destruct Co as [Ow Co]. apply negb_true_iff in Ow.
    split; [|congruence]. destruct (not_owed _ Ow) as [O1 O2]. rewrite O1, O2 in *.
    destruct lp; [|discriminate]. destruct lq; [|discriminate]. simpl in Ep, Eq. subst ep eq.
    destruct (Ps Ow) as [Cp Pp]. pose proof (anchor_passes _ _ _ Sy Sa Cp St Pp) as Pq.
    split; auto. exists [], []. split.
    + constructor; simpl; auto; try (intros ? ? ? []). eapply CS; eauto.
    + simpl. assert (Pl: sb sp' = sb sp /\ sk sp' = S (sk sp)).
      { unfold step1 in Stp. rewrite EBp, EIp in Stp. destruct (_ && _); [discriminate|].
        destruct ip; [|destruct (effsem M o (map (se sp) a0) (sw sp))]; inversion Stp; auto. }
      assert (Pl': sb sq' = sb sq /\ sk sq' = S (sk sq)).
      { unfold step1 in Stq. rewrite EBq, EIq in Stq. destruct (_ && _); [discriminate|].
        destruct iq; [|destruct (effsem M o (map (se sq) a0) (sw sq))]; inversion Stq; auto. }
      destruct Pl as [-> ->]. destruct Pl' as [-> ->]. exact Co.
  - apply andb_true_iff in Co. destruct Co as [_ Co].
    destruct (pairs L T p q K a (lt Bp) (lt Bq)) as [ees|] eqn:Pr; [|discriminate].
    pose proof (edge_world p _ _ _ EBp EIp Stp) as [Wp Tp].
    pose proof (edge_world q _ _ _ EBq EIq Stq) as [Wq Tq].
    split; [|intros _; split; auto; split; auto; exists Bp; auto]. split; auto.
    exists lp, lq. split.
    + constructor; [eapply lists_edge; eauto|eapply lists_edge; eauto| | |].
      * now rewrite Wp.
      * now rewrite Wq.
      * destruct eq as [[o vs]|]; simpl in *.
        -- destruct St as [s1 [C1 [T1 [W1 R1]]]]. exists s1. split; auto. split; auto.
           split; congruence.
        -- eapply CS; eauto. unfold Traps.passes. now rewrite EBq, EIq.
    + rewrite Np, Nq.
      assert (X1: exists e, taken M (lt Bp) (se sp) = Some e /\ sb sp' = dst e /\ sk sp' = 0).
      { unfold step1 in Stp. rewrite EBp, EIp in Stp. destruct (_ && _); [discriminate|].
        destruct (taken M (lt Bp) (se sp)) as [e|]; [|discriminate]. exists e. split; auto.
        unfold enter in Stp. destruct (blk_at p (dst e)); [|discriminate]. now inversion Stp. }
      assert (X2: exists e, taken M (lt Bq) (se sq) = Some e /\ sb sq' = dst e /\ sk sq' = 0).
      { unfold step1 in Stq. rewrite EBq, EIq in Stq. destruct (_ && _); [discriminate|].
        destruct (taken M (lt Bq) (se sq)) as [e|]; [|discriminate]. exists e. split; auto.
        unfold enter in Stq. destruct (blk_at q (dst e)); [|discriminate]. now inversion Stq. }
      destruct X1 as [e [Tk [-> ->]]]. destruct X2 as [e' [Tk' [-> ->]]].
      destruct (block_ok _ _ _ _ okp _ _ (inv_live _ _ _ _ _ Ip) EBp) as [_ [_ [_ CLp]]].
      destruct (block_ok _ _ _ _ okq _ _ (inv_live _ _ _ _ _ Iq) EBq) as [_ [_ [_ CLq]]].
      assert (Kp: sk sp = bn Bp) by (eapply end_at; eauto).
      assert (Kq: sk sq = bn Bq) by (eapply end_at; eauto).
      destruct (pairs_ok L M T anch p q K F rules pair_ok a (lt Bp) (lt Bq) ees sp sq e
        (inv_typed _ _ _ _ _ Ip) (inv_typed _ _ _ _ _ Iq) Pr Ag Eqs) as [e2 [Tk2 Ie]]; auto.
      { intros z Hz. apply (inv_right _ _ _ _ _ Ip). rewrite Kp. eapply args_avail; eauto. }
      { intros z Hz. apply (inv_right _ _ _ _ _ Iq). rewrite Kq. eapply args_avail; eauto. }
      { eapply (taken_edge L M T anch p F tok okp); eauto. }
      { intros e3 T3. eapply (taken_edge L M T anch q F tok okq); eauto. }
      assert (e2 = e') by congruence. subst e2. rewrite forallb_forall in Co.
      exact (Co _ Ie).
Qed.
Lemma ways_start : Ways None startp startq None None.
Proof.
  split; [apply gap_start; auto|]. exists [], []. split.
  - constructor; simpl; auto; try (intros ? ? ? []). constructor.
  - simpl. unfold chk_traps in traps_ok. apply andb_true_iff in traps_ok. tauto.
Qed.
(** Real runs: where one version comes without a trap, the other has come to the start of the ways
    to the next anchor; or it has trapped already, by an operation that the first one owes. *)
Theorem lockstep_calm sp : calm p startp sp -> exists from gp gq eq, Ways from gp gq None eq /\
  nreach p gp sp /\ calm p startp gp /\ calm p gp sp.
Proof.
  induction 1 as [|s s' Cm [fr [gp [gq [eq [Wy [N [Cg Gs]]]]]]] Ps St].
  - exists None, startp, startq, None. split; [apply ways_start|]. repeat split; constructor.
  - destruct (at_anchor p s) eqn:A.
    + destruct (ways_ok _ _ _ _ _ Wy (fun _ => Cg))
        as [ep [sq [a [ep' [eq' [Np [Nq [Sy [_ [_ [Bk [Cs _]]]]]]]]]]]].
      assert (ep = s).
      { pose proof (nreach_on _ _ _ _ _ _ _ _ _ N Np (proj1 (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy)))
        as Y. eapply nreach_anchor; eauto. }
      subst ep. rewrite (Bk eq_refl Gs) in Cs. destruct Cs as [[e [E _]]|Rd]; [discriminate|].
      destruct (anchor_step s sq a s' None eq' Rd St (fun _ => conj Cm Ps)) as [sq' [_ [Wy' _]]].
      exists (rank_of X a), s', sq', eq'. split; auto. split; [constructor|].
      split; [exact (CS _ _ _ _ _ _ _ _ _ _ Cm Ps St)|constructor].
    + exists fr, gp, gq, eq. split; auto. split; [eapply nreach_step; eauto|]. split; auto.
      exact (CS _ _ _ _ _ _ _ _ _ _ Gs Ps St).
Qed.
(** Where an operation traps that the target version owes, it comes to this trap. *)
Lemma owed_trap n : forall sp sq a o vs eq, rank X a < n -> Ready sp sq a (Some (o, vs)) eq ->
  exists e, calm q startq e /\ traps q e o vs /\ sw e = sw sp /\ str e = str sp.
Proof.
  induction n as [|n IH]; intros sp sq a o vs eq Lt Rd; [lia|].
  pose proof Rd as [Sy [lp [lq [Np [Nq [Lp Lq Ep Eq St]]]]]].
  assert (Ow: owed a = true).
  { unfold Owed.owed. rewrite <- Np. destruct lp; [discriminate|]. auto. }
  pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs [Anp _] Id].
  assert (Sa: stop a = false).
  { unfold chk_traps in traps_ok. apply andb_true_iff in traps_ok. destruct traps_ok as [_ Z].
    pose proof (below_ok _ _ Z _ Lt_a) as G. simpl in G. rewrite In_a, Ow in G. simpl in G.
    now destruct (stop a). }
  destruct (at_anchor_ok a Lt_a In_a Sa) as [_ Co]. unfold chk_owed in Co. rewrite At, Ow in Co.
  cbn [fst snd negb andb] in Co. pose proof (invp _ Rp) as Ip.
  destruct (blk_at p (sb sp)) as [B|] eqn:E; [|discriminate].
  destruct (blk_at q (sb sq)) as [Bq|]; [|discriminate].
  destruct (inst_at B (sk sp)) as [ip|] eqn:N;
    [destruct (inst_at Bq (sk sq)); discriminate|].
  destruct (inst_at Bq (sk sq)); [discriminate|]. apply andb_true_iff in Co.
  destruct Co as [Nil _]. apply negb_true_iff in Nil.
  destruct (edge_no_some (les (lt B)) (choose M (lo (lt B)) (map (se sp) (la (lt B))))) as [e Tk].
  { intro Q. rewrite Q in Nil. discriminate. }
  destruct (side_edge L M T anch p q K F pair_ok args args_ok p sp B okp Ip E N e Tk)
    as [_ [sp' [En _]]].
  assert (Sp: step p sp = Some sp').
  { rewrite (step_end L M T anch K p sp B e E N); auto. unfold aid in Id. rewrite E in Id.
    replace (pid B (sk sp)) with a by congruence. now rewrite Sa, andb_false_r. }
  destruct (anchor_step sp sq a sp' _ _ Rd Sp) as [sq' [_ [Wy Wo]]]; [congruence|].
  destruct (Wo Ow) as [Wp [Tp _]].
  destruct (ways_ok _ _ _ _ _ Wy)
    as [ep [sq2 [a' [ep' [eq' [Ng [Nq' [Sy' [Kp [_ [_ [Cs Rk]]]]]]]]]]]]; [discriminate|].
  rewrite (Kp _ eq_refl) in Cs. destruct (nreach_same _ _ _ _ _ _ _ _ Ng) as [Wg Tg].
  destruct Cs as [[e1 [E1 S1]]|Rd'].
  - inversion E1; subst e1. destruct S1 as [s1 [C1 [T1 [W1 R1]]]]. exists s1. split; auto.
    split; auto. rewrite W1, R1, (sy_w _ _ _ _ _ _ _ _ _ _ _ _ Sy'),
      (sy_tr _ _ _ _ _ _ _ _ _ _ _ _ Sy'). split; congruence.
  - unfold rank_of in Rk. rewrite Ow in Rk.
    assert (Ow': owed a' = true).
    { destruct Rd' as [_ [l' [m' [Nl [_ [_ _ El _ _]]]]]]. unfold Owed.owed. rewrite <- Nl.
      destruct l'; [discriminate|]. auto. }
    specialize (Rk Ow'). assert (Lr: rank X a' < n) by lia. destruct (IH _ _ _ _ _ _ Lr Rd')
      as [e1 [C1 [T1 [W1 R1]]]]. exists e1. split; auto. split; auto. split; congruence.
Qed.
(** On a way, a run without a trap comes as far as the run does. *)
Lemma calm_behind a b e : nreach p a b -> nreach p a e -> at_anchor p e = true -> calm p a e ->
  calm p b e.
Proof.
  induction 1 as [a|a s1 b A St Ng IH]; auto. intros Ne An Ce. inversion Ne; subst; [congruence|].
  destruct (calm_first _ _ _ _ _ _ _ _ _ Ce) as [->|[s2 [_ [S2 C2]]]]; [congruence|].
  apply IH; auto; congruence.
Qed.
(** Where the source version traps, the target version does: the same operation, on the same
    operands, in the same world. *)
Theorem traps_together sp o vs : calm p startp sp ->
  (forall B, blk_at p (sb sp) = Some B -> quiet anch stop B = true) -> traps p sp o vs ->
  exists sq, calm q startq sq /\ traps q sq o vs /\ sw sq = sw sp /\ str sq = str sp.
Proof.
  intros Cm Quiet Tr.
  destruct (lockstep_calm _ Cm) as [fr [gp [gq [eq [Wy [Ng [Cg Gs]]]]]]].
  destruct (ways_ok _ _ _ _ _ Wy (fun _ => Cg))
    as [ep [sq [a [ep' [eq' [Np [Nq [Sy [_ [Fst [Bk [Cs _]]]]]]]]]]]].
  specialize (Fst eq_refl). specialize (Bk eq_refl).
  pose proof (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy) as [Anp _].
  destruct (nreach_same _ _ _ _ _ _ _ _ Np) as [Wp Tp].
  destruct (at_anchor p sp) eqn:A.
  - (* The operation is an anchor: nothing is owed there. *)
    assert (ep = sp).
    { pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ng Np Anp) as Y. eapply nreach_anchor; eauto. }
    subst ep. rewrite (Bk Gs) in Cs. destruct Cs as [[e [E _]]|Rd]; [discriminate|].
    destruct Tr as [B [i [x [y [E [N [-> Ht]]]]]]].
    pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs Anc Id]. unfold aid in Id. rewrite E in Id.
    assert (Ida: pid B (sk sp) = a) by congruence.
    pose proof (calm_inv L M T halt anch stop p F rules tok okp args w args_ok args_ty _ Cm) as Ip.
    assert (St: stop a = false).
    { pose proof (Quiet _ E) as Qb. unfold quiet in Qb.
      destruct (inv_at _ _ _ _ _ Ip) as [B0 [E0 K0]]. replace B0 with B in * by congruence.
      assert (Kl: sk sp < S (bn B)) by lia. pose proof (below_ok _ _ Qb _ Kl) as Z. simpl in Z.
      unfold Paths.at_anchor in A. rewrite E in A. rewrite A, Ida in Z. simpl in Z.
      now apply negb_true_iff. }
    pose proof (okanch L T anch p q K pair_ok _ Lt_a In_a St) as CA. unfold chk_anchor in CA.
    destruct (at_anchor_ok a Lt_a In_a St) as [CT Co]. unfold chk_owed in Co.
    unfold chk_trap_anchor in CT. rewrite At in CA, CT, Co. cbn [fst snd] in CA, CT, Co.
    rewrite E in CA, CT, Co. destruct (blk_at q (sb sq)) as [Bq|] eqn:Eq; [|discriminate].
    apply andb_true_iff in CA. destruct CA as [_ CA]. rewrite N in CA, CT, Co.
    destruct (inst_at Bq (sk sq)) as [[i' x' o' y'|i' o' y' r']|] eqn:Nq'; try discriminate.
    apply andb_true_iff in CA. destruct CA as [Eo _]. apply (op_eqb_ok _ _ F) in Eo. subst o'.
    apply andb_true_iff in Co. destruct Co as [Ow _]. apply negb_true_iff in Ow.
    destruct (not_owed _ Ow) as [_ O2]. destruct Rd as [_ [lp [lq [_ [Mq [_ _ _ Eq' Ss]]]]]].
    rewrite O2 in Mq. destruct lq; [|discriminate]. simpl in Eq'. subst eq'. simpl in Ss.
    exists sq. split; auto. split; [|split; auto].
    assert (Ne: excused L T H p (by_p X) (sb sp) (sk sp) x o y = false).
    { destruct (excused L T H p (by_p X) (sb sp) (sk sp) x o y) eqn:Ex; auto.
      pose proof (calm_flags L M T H halt anch stop p F rules FT tok okp args w args_ok args_ty _
        Cm) as Fp.
      rewrite (excused_passes L M T H halt anch p (by_p X) F FT tok okp sp B i x o y Ip Fp E N Ex)
        in Ht. discriminate. }
    rewrite Ne in CT. simpl in CT.
    pose proof (calm_inv L M T halt anch stop q F rules tok okq args w argsq args_ty _ Ss) as Iq.
    destruct (inst_args L M T anch p okp _ _ _ _ _ _ Ip E N) as [Agp _].
    destruct (inst_args L M T anch q okq _ _ _ _ _ _ Iq Eq Nq') as [Agq _].
    assert (Ops: map (se sp) y = map (se sq) y').
    { eapply (same_ops_ok L M T anch p q K pair_ok); eauto. }
    exists Bq, i', x', y'. repeat split; auto. now rewrite Ew.
  - (* It is on the way to an anchor. *)
    assert (Ev: ep' = Some (o, vs) /\ sw sp = sw gp /\ str sp = str gp).
    { destruct ep' as [[o1 vs1]|].
      - destruct Fst as [s1 [C1 [T1 [W1 R1]]]].
        destruct (traps_once L M T halt anch stop p startp s1 sp o1 vs1 o vs) as [-> [-> ->]]; auto.
        eapply calm_trans; eauto.
      - exfalso. pose proof (calm_behind _ _ _ Ng Np Anp Fst) as Ce.
        destruct (calm_first _ _ _ _ _ _ _ _ _ Ce) as [->|[s1 [P1 _]]]; [congruence|].
        now destruct (traps_passes _ _ _ _ _ Tr). }
    destruct Ev as [-> [Ws Ts]]. destruct Cs as [[e [E S1]]|Rd].
    + inversion E; subst e. destruct S1 as [s1 [C1 [T1 [W1 R1]]]]. exists s1. split; auto.
      split; auto. rewrite W1, R1, (sy_w _ _ _ _ _ _ _ _ _ _ _ _ Sy),
        (sy_tr _ _ _ _ _ _ _ _ _ _ _ _ Sy). split; congruence.
    + destruct (owed_trap (S (rank X a)) _ _ _ _ _ _ (Nat.lt_succ_diag_r _) Rd)
        as [s1 [C1 [T1 [W1 R1]]]]. exists s1. split; auto. split; auto. split; congruence.
Qed.
(** Where the source version comes without a trap, the target version comes to the same world by the
    same effects without a trap: to the start of the ways, or to a trap that the first one owes. *)
Lemma worlds_together sp : calm p startp sp ->
  exists sq, calm q startq sq /\ sw sq = sw sp /\ str sq = str sp /\
  ((exists o vs, traps q sq o vs) \/ exists gp, Gap gp sq).
Proof.
  intro Cm. destruct (lockstep_calm _ Cm) as [fr [gp [gq [eq [Wy [Ng [Cg Gs]]]]]]].
  destruct (nreach_same _ _ _ _ _ _ _ _ Ng) as [Wp Tp].
  destruct Wy as [G [lp [lq [[_ _ _ _ St] _]]]].
  pose proof (ga_w _ _ _ _ _ _ _ _ _ _ _ G) as Wg.
  pose proof (ga_tr _ _ _ _ _ _ _ _ _ _ _ G) as Tg.
  destruct eq as [[o vs]|]; simpl in St.
  - destruct St as [s1 [C1 [T1 [W1 R1]]]]. exists s1. split; auto. split; [congruence|].
    split; [congruence|]. left. eauto.
  - exists gq. split; auto. split; [congruence|]. split; [congruence|]. right. eauto.
Qed.
(** An end of one version without a trap is an end of the other. *)
Lemma ends_together sp o vs : calm p startp sp -> ends anch K p sp o vs ->
  exists sq, calm q startq sq /\ ends anch K q sq o vs /\ sw sq = sw sp /\ str sq = str sp.
Proof.
  intros Cm En. destruct (lockstep_calm _ Cm) as [fr [gp [gq [eq [Wy [Ng [Cg Gs]]]]]]].
  destruct (ways_ok _ _ _ _ _ Wy (fun _ => Cg))
    as [ep [sq [a [ep' [eq' [Np [Nq [Sy [_ [_ [Bk [Cs _]]]]]]]]]]]].
  pose proof (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy) as [Anp Anq].
  pose proof En as [B [E [N [Nil [Lo [An [Sp Vs]]]]]]].
  assert (A: at_anchor p sp = true) by (unfold Paths.at_anchor, is_anch; now rewrite E, N).
  assert (ep = sp).
  { pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ng Np Anp) as Y. eapply nreach_anchor; eauto. }
  subst ep. rewrite (Bk eq_refl Gs) in Cs. destruct Cs as [[e [E1 _]]|Rd]; [discriminate|].
  destruct (result_from L M T anch p q K F rules pair_ok args w args_ok args_ty
    (fun e => at_anchor q e = true -> calm q startq e) gp gq sp o vs)
    as [e [Req [Eq [Wq Tq]]]]; auto.
  - intros e Ne Ae. assert (e = sq).
    { pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ne Nq Anq) as Y. symmetry.
      eapply nreach_anchor; eauto. }
    subst e. pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs _ Id]. unfold aid in Id.
    rewrite E in Id. assert (Ida: pid B (sk sp) = a) by congruence. unfold pid in Ida.
    rewrite N in Ida. rewrite Ida in Sp. destruct (at_anchor_ok a Lt_a In_a Sp) as [_ Co].
    unfold chk_owed in Co. rewrite At in Co. cbn [fst snd] in Co. rewrite E, N, Nil in Co.
    destruct (blk_at q (sb sq)) as [Bq|]; [|discriminate].
    destruct (inst_at Bq (sk sq)); [discriminate|]. apply andb_true_iff in Co.
    destruct Co as [Ow _]. simpl in Ow. rewrite andb_true_r in Ow. apply negb_true_iff in Ow.
    destruct (not_owed _ Ow) as [_ O2]. destruct Rd as [_ [lp [lq [_ [Mq [_ _ _ Eq' Ss]]]]]].
    rewrite O2 in Mq. destruct lq; [|discriminate]. simpl in Eq'. now subst eq'.
  - exact (proj1 Wy).
  - exists e. split; [|auto]. apply Req. destruct Eq as [Bq [EBq [Nq' [_ [_ [Aq _]]]]]].
    unfold Paths.at_anchor, is_anch. now rewrite EBq, Nq'.
Qed.

(** ** Landing *)
Theorem landing_calm (E : entry op) sp : chk_entry L T anch p q K E = true ->
  chk_passed E = true -> calm p startp sp -> (sb sp, sk sp) = src E ->
  exists sq, calm q startq sq /\ (sb sq, sk sq) = tgt E /\ sw sq = sw sp /\ str sq = str sp /\
  (exists a ap aq csp csq ep eq, Landed L M T anch p q K E sp sq a ap aq csp csq ep eq) /\
  forall env, (forall x, mem x (requires E) = true -> env x = se sp x) ->
  forall x o, get x (assigns E) = Some o -> fire M E env o = se sq x.
Proof.
  intros Ce Cd Cm At. unfold chk_passed in Cd.
  destruct (walkp (fst (src E)) (snd (src E))) as [[lp ap]|] eqn:Wp; [|discriminate].
  destruct (walkq (fst (tgt E)) (snd (tgt E))) as [[lq aq]|] eqn:Wq; [|discriminate].
  destruct (aid p (fst ap) (snd ap)) as [a|] eqn:Id; [|discriminate].
  apply andb_true_iff in Cd. destruct Cd as [Cin Cnew]. rewrite forallb_forall in Cin, Cnew.
  destruct (lockstep_calm _ Cm) as [fr [gp [gq [eq [Wy [Ng [Cg Gs]]]]]]].
  pose proof Wy as [G [qp [qq [[Lp Lq Ep Eq St] Ch]]]].
  destruct (gap_sync L M T anch p q K F rules pair_ok args w args_ok args_ty _ _ G)
    as [ep [sq0 [a0 [Np [Nq Sy]]]]].
  pose proof (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy) as [Anp Anq].
  pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ng Np Anp) as Ns.
  pose proof (calm_reach _ _ _ _ _ _ _ _ _ Cm) as Rp. rewrite <- At in Wp. cbn [fst snd] in Wp.
  destruct (along_p L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty sp ep _ _ _
    Rp Ns Anp Wp) as [-> [tp Alp]]. cbn [fst snd] in Id.
  pose proof (sy_id _ _ _ _ _ _ _ _ _ _ _ _ Sy) as Id0. assert (a0 = a) by congruence. subst a0.
  destruct (nreach_same _ _ _ _ _ _ _ _ Ng) as [Wg Tg].
  pose proof (ga_w _ _ _ _ _ _ _ _ _ _ _ G) as Wgq.
  pose proof (ga_q _ _ _ _ _ _ _ _ _ _ _ G) as Rgq. pose proof (invq _ Rgq) as Igq.
  (* What the check of the ways says. *)
  unfold chk_ways in Ch. cbn [fst snd] in Ch.
  destruct (walkp (sb gp) (sk gp)) as [[wp zp]|] eqn:Wgp; [|discriminate].
  destruct (walkq (sb gq) (sk gq)) as [[wq zq]|] eqn:Wqq; [|discriminate].
  destruct (along_p L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty gp ep _ _ _
    (ga_p _ _ _ _ _ _ _ _ _ _ _ G) Np Anp Wgp) as [-> [tgp Algp]].
  destruct (along_q L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty gq sq0 _ _ _
    Rgq Nq Anq Wqq) as [-> [tgq Algq]].
  cbn [fst snd] in Ch. rewrite Id in Ch.
  repeat (apply andb_true_iff in Ch; let H1 := fresh "Ch" in destruct Ch as [Ch H1]).
  clear Ch Ch0 Ch1 Ch5. rename Ch2 into Cq, Ch3 into Cc, Ch4 into Ndq, Ch6 into Avq.
  rewrite forallb_forall in Cq, Cc, Avq. apply nodupb_ok in Ndq.
  pose proof Algq as [Mq [Lsq _]]. specialize (Lsq qq Ndq Lq).
  assert (Lgq: lists q sq0 qq).
  { intros y o vs I. apply Lsq. apply in_or_app. now left. }
  (* The target version has not trapped where the ways start. *)
  assert (Cgq: calm q startq gq).
  { assert (N0: eq = None).
    { rewrite <- Eq. apply first_none. intros y o vs Iy.
      assert (In y (map fst qq)) by (apply in_map_iff; exists (y, (o, vs)); auto).
      assert (Iy': In y (came X a)) by (apply inb_In; apply Cc; auto).
      rewrite Wgq, <- Wg.
      apply (p_passed_ok L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty sp ep
        sq0 a lp tp y o vs qq); auto. apply Avq. apply in_or_app. now left. }
    rewrite N0 in St. exact St. }
  destruct (entry_from L M T anch p q K F rules pair_ok args w args_ok args_ty
    (fun s => calm q startq s \/ nreach q gq s) E sp gp gq)
    as [sq [Rq [Aq [Ew [Et [Ld Right]]]]]]; auto.
  { intros s [Cs|N]; [eapply calm_reach; eauto|eapply nreach_reach; eauto]. }
  { intros s [Cs|N].
    - destruct (calm_came _ _ _ _ _ _ _ _ _ Cs) as [->|[s' [C' S']]]; auto. right. eauto.
    - assert (Z: s = gq \/ exists s', nreach q gq s' /\ step q s' = Some s).
      { clear -N. induction N as [s|s s1 s' A S N IH]; auto. right. destruct IH as [->|[z [Nz Sz]]].
        - exists s. split; auto. constructor.
        - exists z. split; auto. econstructor; eauto. }
      destruct Z as [->|[s' [N' S']]]; [|right; eauto].
      destruct (calm_came _ _ _ _ _ _ _ _ _ Cgq) as [->|[s' [C' S']]]; auto. right. eauto. }
  exists sq. split; [|auto]. destruct Rq as [Cs|Ngs]; auto.
  (* The target version comes to the landing point on this way. *)
  pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ngs Nq Anq) as Nsq.
  destruct (track L M T H halt anch stop q (by_q X) F rules FT tok okq args w argsq args_ty gq sq
    Ngs _ _ _ Igq Wqq) as [m [l1 [l2 [t1 [Wk2 [El [M1 [Ls1 [_ [Cm1 _]]]]]]]]]].
  assert (Rsq: reach L M T anch stop q startq sq) by (eapply nreach_reach; eauto).
  rewrite <- Aq in Wq. cbn [fst snd] in Wq.
  pose proof (walk_same L T H anch q (by_q X) _ _ _ _ _ _ Wk2 Wq) as Q. inversion Q; subst l2 aq.
  destruct (along_q L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty sq sq0 _ _ _
    Rsq Nsq Anq Wq) as [_ [t2 Al2]].
  subst wq. rewrite map_app in Ndq.
  assert (Nd1: NoDup (map fst qq ++ map fst l1)).
  { rewrite app_assoc in Ndq. clear -Ndq. induction (map fst qq ++ map fst l1); [constructor|].
    inversion Ndq; subst. constructor; auto. intro I. apply H1. apply in_or_app. now left. }
  specialize (Ls1 qq Nd1 Lq). pose proof Al2 as [M2 [Ls2 _]].
  assert (Lall: lists q sq0 ((qq ++ t1) ++ t2)).
  { apply Ls2; auto. rewrite map_app, M1, <- app_assoc. now apply opens_nodup. }
  assert (N1: first_trap (sw gq) t1 = None).
  { apply first_none. intros y o vs Iy. assert (Iy1: In y (opens l1)).
    { rewrite <- M1. apply in_map_iff. exists (y, (o, vs)). auto. }
    assert (Ay: availb q y (sb sq0) (sk sq0) = true).
    { apply Avq. apply in_or_app. right. rewrite opens_app. apply in_or_app. now left. }
    assert (Il: In (y, (o, vs)) (qq ++ t1)) by (apply in_or_app; now right).
    destruct (is_nil (map fst qp) && p_passed T H p q K X a (sb ep, sk ep) wp y) eqn:Dr.
    - apply andb_true_iff in Dr. destruct Dr as [_ Dr]. rewrite Wgq.
      apply (p_passed_ok L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty gp ep
        sq0 a wp tgp y o vs ((qq ++ t1) ++ t2)); auto. apply in_or_app. now left.
    - assert (Im: In y (meets X a)).
      { apply inb_In, Cq. apply filter_In. rewrite Dr. split; auto. rewrite opens_app.
        apply in_or_app. now left. }
      apply Cnew in Im. apply orb_true_iff in Im. destruct Im as [Im|Im].
      + exfalso. apply inb_In in Im. apply opens_in in Iy1.
        exact (nodup_apart _ _ _ _ Ndq Iy1 Im).
      + rewrite Wgq, <- Wg.
        apply (p_passed_ok L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty sp ep
          sq0 a lp tp y o vs ((qq ++ t1) ++ t2)); auto. apply in_or_app. now left. }
  specialize (Cm1 Cgq). rewrite N1 in Cm1. eapply calm_trans; eauto.
Qed.
End Matched.
Print Assumptions landing_calm.
Print Assumptions traps_together.
