(** Real runs of two versions: where one traps, the other traps by the same operation on the same
    operands (but for the value of a store), in the same world and after the same effects. *)
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
Notation stop := (stopped K).
Notation start := (start M T).
Notation nreach := (nreach L M T anch stop).
Notation at_anchor := (at_anchor anch).
Notation lists := (lists M T H).
Notation owed := (owed X).

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
Notation calm v := (calm L M T halt anch stop v).
Notation traps v := (traps halt v).
Notation passes v := (passes halt v).
Notation startp := (start p args w).
Notation startq := (start q args w).
Notation status := (status L M T halt anch q K args w).
Notation alike := (alike H).
Notation Ready := (Ready L M T H halt anch p q K X args w).
Notation Ways := (Ways L M T H halt anch p q K X args w).
Notation step v := (step1 L M T anch stop v).
Let ways_ok := ways_ok L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty.

Lemma at_anchor_ok a : a < nids K -> reached K a = true -> stop a = false ->
  chk_owed L T H anch p q K X a = true.
Proof.
  intros Lt In St. unfold chk_traps in traps_ok. apply andb_true_iff in traps_ok.
  destruct traps_ok as [_ Z]. pose proof (below_ok _ _ Z _ Lt) as G. simpl in G.
  now rewrite In, St in G.
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
(** At an anchor without effect, both versions trap alike, or have done so, or both pass. *)
Lemma pure_anchor sp sq a ep eq Bp Bq i x o c i' y o' c' : Ready sp sq a ep eq -> stop a = false ->
  blk_at p (sb sp) = Some Bp -> blk_at q (sb sq) = Some Bq ->
  inst_at Bp (sk sp) = Some (IPure i x o c) -> inst_at Bq (sk sq) = Some (IPure i' y o' c') ->
  (ep = None -> calm p startp sp) ->
  (exists o1 vs vs', (ep = Some (o1, vs) \/ ep = None /\ traps p sp o1 vs) /\ alike o1 vs vs' /\
    status sq (Some (o1, vs'))) \/
  (ep = None /\ passes p sp /\ calm q startq sq /\ passes q sq).
Proof.
  intros [Sy [lp [lq [Np [Nq [[Lp Lq Ep Eq St] [Hp Hq]]]]]]] Sa EBp EBq EIp EIq Cp.
  pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs Anc Id].
  pose proof (okanch L T anch p q K pair_ok _ Lt_a In_a Sa) as CA. unfold chk_anchor in CA.
  pose proof (at_anchor_ok a Lt_a In_a Sa) as Co. unfold chk_owed in Co.
  rewrite At in CA, Co. cbn [fst snd] in CA, Co. rewrite EBp, EBq, EIp, EIq in CA, Co.
  apply andb_true_iff in CA. destruct CA as [_ CA]. apply andb_true_iff in CA.
  destruct CA as [Eo _]. apply (op_eqb_ok _ _ F) in Eo. subst o'.
  apply andb_true_iff in Co. destruct Co as [Co _].
  pose proof (invp _ Rp) as Ip. pose proof (invq _ Rq) as Iq.
  destruct (inst_args L M T anch p okp _ _ _ _ _ _ Ip EBp EIp) as [Agp Dlp].
  destruct (inst_args L M T anch q okq _ _ _ _ _ _ Iq EBq EIq) as [Agq Dlq].
  pose proof (site_here p _ _ _ _ _ _ _ Dlp EBp EIp) as Sip.
  pose proof (site_here q _ _ _ _ _ _ _ Dlq EBq EIq) as Siq.
  assert (Pp: passes p sp <-> halt o (map (se sp) c) (sw sp) = false)
    by (unfold Traps.passes; rewrite EBp, EIp; tauto).
  assert (Pq: passes q sq <-> halt o (map (se sq) c') (sw sq) = false)
    by (unfold Traps.passes; rewrite EBq, EIq; tauto).
  assert (Tp: halt o (map (se sp) c) (sw sp) = true -> traps p sp o (map (se sp) c))
    by (intro Ht; exists Bp, i, x, c; auto).
  assert (Tq: halt o (map (se sq) c') (sw sq) = true -> traps q sq o (map (se sq) c'))
    by (intro Ht; exists Bq, i', y, c'; auto).
  unfold chk_pure in Co. apply orb_true_iff in Co. destruct Co as [Co|Co].
  - apply andb_true_iff in Co. destruct Co as [Ow Ops]. apply negb_true_iff in Ow.
    destruct (not_owed _ Ow) as [O1 O2]. rewrite O1, O2 in *.
    destruct lp; [|discriminate]. destruct lq; [|discriminate]. simpl in Ep, Eq. subst ep eq.
    assert (Q: map (se sp) c = map (se sq) c')
      by (eapply (same_ops_ok L M T anch p q K pair_ok); eauto).
    destruct (halt o (map (se sp) c) (sw sp)) eqn:Ht.
    + left. exists o, (map (se sp) c), (map (se sp) c). split; auto. split; [left; auto|].
      exists sq. split; auto. split; auto. rewrite Q. apply Tq. now rewrite <- Q, Ew.
    + right. split; auto. split; [now apply Pp|]. split; auto. apply Pq. now rewrite <- Q, Ew.
  - cbn [fst snd] in Co. set (xp := excused L T H p (by_p X) (sb sp) (sk sp) x o c) in *.
    set (xq := excused L T H q (by_q X) (sb sq) (sk sq) y o c') in *.
    set (mp := if xp then [] else [(x, (o, map (se sp) c))]).
    set (mq := if xq then [] else [(y, (o, map (se sq) c'))]).
    assert (Fp: ep = None -> xp = true -> halt o (map (se sp) c) (sw sp) = false).
    { intros E Ex. eapply (excused_passes L M T H halt anch p (by_p X) F FT tok okp); eauto.
      eapply (calm_flags L M T H halt anch stop p F rules FT tok okp); eauto. }
    assert (Fq: calm q startq sq -> xq = true -> halt o (map (se sq) c') (sw sq) = false).
    { intros E Ex. eapply (excused_passes L M T H halt anch q (by_q X) F FT tok okq); eauto.
      eapply (calm_flags L M T H halt anch stop q F rules FT tok okq); eauto. }
    assert (Hp': holds M T p sp (lp ++ mp)).
    { intros z o1 v1 I. apply in_app_or in I. destruct I as [I|I]; [now apply Hp|].
      unfold mp in I. destruct xp; [destruct I|]. destruct I as [I|[]]. inversion I; subst.
      exists c. split; auto. exact (map_ext_in _ _ _ Agp). }
    assert (Hq': holds M T q sq (lq ++ mq)).
    { intros z o1 v1 I. apply in_app_or in I. destruct I as [I|I]; [now apply Hq|].
      unfold mq in I. destruct xq; [destruct I|]. destruct I as [I|[]]. inversion I; subst.
      exists c'. split; auto. exact (map_ext_in _ _ _ Agq). }
    assert (Np': map fst (lp ++ mp) = only_p X a ++ (if xp then [] else [x]))
      by (rewrite map_app, Np; unfold mp; now destruct xp).
    assert (Nq': map fst (lq ++ mq) = only_q X a ++ (if xq then [] else [y]))
      by (rewrite map_app, Nq; unfold mq; now destruct xq).
    rewrite <- Np', <- Nq' in Co.
    destruct (cancel_ok L M T H halt anch p q K F FT pair_ok args w sp sq a (sw sp) Sy _ _ Hp' Hq')
      as [[o1 [vs [vs' [E1 [E2 Al]]]]]|[l [m [Cn [_ [_ [E1 E2]]]]]]].
    + left. exists o1, vs, vs'. rewrite first_app in E1, E2. rewrite Ep in E1.
      rewrite <- Ew, Eq in E2. split; [|split; auto].
      * destruct ep as [e|]; [now left|]. right. split; auto. unfold mp in E1.
        destruct xp; simpl in E1; [discriminate|].
        destruct (halt o (map (se sp) c) (sw sp)) eqn:Ht; [|discriminate].
        inversion E1; subst. auto.
      * destruct eq as [e|]; [now rewrite E2 in St|]. unfold mq in E2.
        destruct xq; simpl in E2; [discriminate|].
        destruct (halt o (map (se sq) c') (sw sq)) eqn:Ht; [|discriminate].
        inversion E2; subst. exists sq. auto.
    + right. rewrite Cn in Co. apply andb_true_iff in Co. destruct Co as [C1 C2].
      apply is_nil_ok in C1. apply is_nil_ok in C2. destruct l; [|discriminate].
      destruct m; [|discriminate]. simpl in E1, E2. rewrite first_app in E1, E2.
      rewrite Ep in E1. rewrite <- Ew, Eq in E2. destruct ep; [discriminate|].
      destruct eq; [discriminate|]. split; auto. simpl in St. split; [|split; auto].
      * apply Pp. unfold mp in E1. destruct xp eqn:Ex; auto. simpl in E1.
        now destruct (halt o (map (se sp) c) (sw sp)).
      * apply Pq. unfold mq in E2. destruct xq eqn:Ex; auto. simpl in E2.
        now destruct (halt o (map (se sq) c') (sw sq)).
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
  (forall B i, blk_at p (sb sp) = Some B -> inst_at B (sk sp) = Some i ->
    ep = None /\ calm p startp sp /\ passes p sp) ->
  exists from sq' eq', step q sq = Some sq' /\ Ways from sp' sq' ep eq' /\
  (ep <> None -> from = Some (rank X a) /\ sw sp' = sw sp /\ str sp' = str sp).
Proof.
  intros Rd Stp Ps. pose proof Rd as [Sy [lp [lq [Np [Nq [[Lp Lq Ep Eq St] [Hp Hq]]]]]]].
  pose proof (sync_live _ _ _ _ Sy Stp) as Sa.
  destruct (sync_step L M T anch p q K F rules pair_ok args w args_ok args_ty _ _ _ _ Sy Stp)
    as [sq' [Stq G]].
  pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs Anc Id].
  pose proof (invp _ Rp) as Ip. pose proof (invq _ Rq) as Iq.
  pose proof (at_anchor_ok a Lt_a In_a Sa) as Co. unfold chk_owed in Co. rewrite At in Co.
  cbn [fst snd] in Co. unfold chk_behind in Co.
  destruct (blk_at p (sb sp)) as [Bp|] eqn:EBp; [|discriminate].
  destruct (blk_at q (sb sq)) as [Bq|] eqn:EBq; [|discriminate].
  destruct (inst_at Bp (sk sp)) as [ip|] eqn:EIp; destruct (inst_at Bq (sk sq)) as [iq|] eqn:EIq;
    try discriminate.
  - destruct (Ps _ _ eq_refl EIp) as [-> [Cp Pp]]. apply andb_true_iff in Co.
    destruct Co as [Co Cw].
    assert (Q: calm q startq sq /\ passes q sq).
    { destruct ip as [i x o c|i o c r].
      - destruct iq as [i' y o' c'|i' o' c' r'].
        + destruct (pure_anchor sp sq a None eq Bp Bq i x o c i' y o' c' Rd Sa EBp EBq EIp EIq
            (fun _ => Cp)) as [[o1 [vs [vs' [[E|[_ Tr]] _]]]]|[_ [_ Q]]]; auto; [discriminate|].
          now destruct (traps_passes _ _ _ _ _ Tr).
        + split; [|unfold Traps.passes; now rewrite EBq, EIq]. apply negb_true_iff in Co.
          destruct (not_owed _ Co) as [_ O2]. rewrite O2 in Nq. destruct lq; [|discriminate].
          simpl in Eq. now subst eq.
      - apply negb_true_iff in Co. destruct (not_owed _ Co) as [_ O2]. rewrite O2 in Nq.
        destruct lq; [|discriminate]. simpl in Eq. subst eq. split; auto.
        pose proof (okanch L T anch p q K pair_ok _ Lt_a In_a Sa) as CA. unfold chk_anchor in CA.
        rewrite At in CA. cbn [fst snd] in CA. rewrite EBp, EBq, EIp, EIq in CA.
        unfold Traps.passes. rewrite EBq, EIq. destruct iq; auto.
        apply andb_true_iff in CA. destruct CA as [_ CA]. discriminate. }
    destruct Q as [Cq Pq]. exists None, sq', None. split; auto. split; [|intro N; now destruct N].
    split; auto. exists [], []. split.
    + constructor; simpl; auto; try (intros ? ? ? []). eapply CS; eauto.
    + simpl. assert (Pl: sb sp' = sb sp /\ sk sp' = S (sk sp)).
      { unfold step1 in Stp. rewrite EBp, EIp in Stp. destruct (_ && _); [discriminate|].
        destruct ip; [|destruct (effsem M o (map (se sp) a0) (sw sp))]; inversion Stp; auto. }
      assert (Pl': sb sq' = sb sq /\ sk sq' = S (sk sq)).
      { unfold step1 in Stq. rewrite EBq, EIq in Stq. destruct (_ && _); [discriminate|].
        destruct iq; [|destruct (effsem M o (map (se sq) a0) (sw sq))]; inversion Stq; auto. }
      destruct Pl as [-> ->]. destruct Pl' as [-> ->]. exact Cw.
  - apply andb_true_iff in Co. destruct Co as [_ Co].
    destruct (pairs L T p q K a (lt Bp) (lt Bq)) as [ees|] eqn:Pr; [|discriminate].
    pose proof (edge_world p _ _ _ EBp EIp Stp) as [Wp Tp].
    pose proof (edge_world q _ _ _ EBq EIq Stq) as [Wq Tq].
    exists (rank_of X a), sq', eq. split; auto. split.
    2: { intro N. split; auto. unfold rank_of. destruct (owed a) eqn:Ow; auto.
         destruct (not_owed _ Ow) as [O1 _]. rewrite O1 in Np. destruct lp; [|discriminate].
         simpl in Ep. now subst ep. }
    split; auto. exists lp, lq. split.
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
      subst ep. rewrite (Bk eq_refl Gs) in Cs.
      destruct Cs as [[o [vs [vs' [E _]]]]|Rd]; [discriminate|].
      destruct (anchor_step s sq a s' None eq' Rd St (fun _ _ _ _ => conj eq_refl (conj Cm Ps)))
        as [fr' [sq' [eq2 [_ [Wy' _]]]]].
      exists fr', s', sq', eq2. split; auto. split; [constructor|].
      split; [exact (CS _ _ _ _ _ _ _ _ _ _ Cm Ps St)|constructor].
    + exists fr, gp, gq, eq. split; auto. split; [eapply nreach_step; eauto|]. split; auto.
      exact (CS _ _ _ _ _ _ _ _ _ _ Gs Ps St).
Qed.
(** Where an operation traps that the target version owes, it comes to this trap. *)
Definition comes_to (sp : st V W) (o : op) (vs : list V) : Prop := exists e vs',
  calm q startq e /\ traps q e o vs' /\ alike o vs vs' /\ sw e = sw sp /\ str e = str sp.
Lemma status_comes sp sq a o vs vs' : Sync sp sq a -> alike o vs vs' -> status sq (Some (o, vs')) ->
  comes_to sp o vs.
Proof.
  intros Sy Al [s1 [C1 [T1 [W1 R1]]]]. exists s1, vs'. split; auto. split; auto. split; auto.
  rewrite W1, R1, (sy_w _ _ _ _ _ _ _ _ _ _ _ _ Sy), (sy_tr _ _ _ _ _ _ _ _ _ _ _ _ Sy). auto.
Qed.
Lemma owed_trap n : forall sp sq a o vs eq, rank X a < n -> Ready sp sq a (Some (o, vs)) eq ->
  comes_to sp o vs.
Proof.
  induction n as [|n IH]; intros sp sq a o vs eq Lt Rd; [lia|].
  pose proof Rd as [Sy [lp [lq [Np [Nq [[Lp Lq Ep Eq St] _]]]]]].
  assert (Ow: owed a = true).
  { unfold Owed.owed. rewrite <- Np. destruct lp; [discriminate|]. auto. }
  pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs [Anp _] Id].
  assert (Sa: stop a = false).
  { unfold chk_traps in traps_ok. apply andb_true_iff in traps_ok. destruct traps_ok as [_ Z].
    pose proof (below_ok _ _ Z _ Lt_a) as G. simpl in G. rewrite In_a, Ow in G. simpl in G.
    now destruct (stop a). }
  pose proof (at_anchor_ok a Lt_a In_a Sa) as Co. unfold chk_owed in Co. rewrite At, Ow in Co.
  cbn [fst snd negb andb] in Co. pose proof (invp _ Rp) as Ip.
  destruct (blk_at p (sb sp)) as [B|] eqn:E; [|discriminate].
  destruct (blk_at q (sb sq)) as [Bq|] eqn:E'; [|discriminate].
  destruct (inst_at B (sk sp)) as [ip|] eqn:N.
  { destruct (inst_at Bq (sk sq)) as [iq|] eqn:N'; [|discriminate].
    destruct ip as [i x o1 c|]; [|discriminate]. destruct iq as [i' y o' c'|]; [|discriminate].
    destruct (pure_anchor sp sq a _ eq B Bq i x o1 c i' y o' c' Rd Sa E E' N N')
      as [[o2 [vs2 [vs' [[Q|[Q _]] [Al St']]]]]|[Q _]]; try discriminate.
    inversion Q; subst. eapply status_comes; eauto. }
  destruct (inst_at Bq (sk sq)); [discriminate|]. apply andb_true_iff in Co.
  destruct Co as [Nil _]. apply negb_true_iff in Nil.
  destruct (edge_no_some (les (lt B)) (choose M (lo (lt B)) (map (se sp) (la (lt B))))) as [e Tk].
  { intro Q. rewrite Q in Nil. discriminate. }
  destruct (side_edge L M T anch p q K F pair_ok args args_ok p sp B okp Ip E N e Tk)
    as [_ [sp' [En _]]].
  assert (Sp: step p sp = Some sp').
  { rewrite (step_end L M T anch K p sp B e E N); auto. unfold aid in Id. rewrite E in Id.
    replace (pid B (sk sp)) with a by congruence. now rewrite Sa, andb_false_r. }
  destruct (anchor_step sp sq a sp' _ _ Rd Sp) as [fr [sq' [eq2 [_ [Wy Wo]]]]].
  { intros B' i E1 N1. exfalso. congruence. }
  destruct Wo as [-> [Wp Tp]]; [discriminate|].
  destruct (ways_ok _ _ _ _ _ Wy)
    as [ep [sq2 [a' [ep' [eq' [Ng [Nq' [Sy' [Kp [_ [_ [Cs Rk]]]]]]]]]]]]; [discriminate|].
  rewrite (Kp _ eq_refl) in Cs. destruct (nreach_same _ _ _ _ _ _ _ _ Ng) as [Wg Tg].
  assert (Cm: comes_to ep o vs).
  { destruct Cs as [[o1 [vs1 [vs' [E1 [Al S1]]]]]|Rd'].
    - inversion E1; subst o1 vs1. eapply status_comes; eauto.
    - assert (Ow': owed a' = true).
      { destruct Rd' as [_ [l' [m' [Nl [_ [[_ _ El _ _] _]]]]]]. unfold Owed.owed. rewrite <- Nl.
        destruct l'; [discriminate|]. auto. }
      specialize (Rk Ow'). assert (Lr: rank X a' < n) by lia. exact (IH _ _ _ _ _ _ Lr Rd'). }
  destruct Cm as [s1 [vs' [C1 [T1 [Al [W1 R1]]]]]]. exists s1, vs'. repeat split; auto; congruence.
Qed.
(** On a way, a run without a trap comes as far as the run does. *)
Lemma calm_behind a b e : nreach p a b -> nreach p a e -> at_anchor p e = true -> calm p a e ->
  calm p b e.
Proof.
  induction 1 as [a|a s1 b A St Ng IH]; auto. intros Ne An Ce. inversion Ne; subst; [congruence|].
  destruct (calm_first _ _ _ _ _ _ _ _ _ Ce) as [->|[s2 [_ [S2 C2]]]]; [congruence|].
  apply IH; auto; congruence.
Qed.
(** Where the source version traps, the target version does: the same operation, on operands that
    decide the trap alike and the same memory, in the same world and after the same effects. *)
Theorem traps_together sp o vs : calm p startp sp ->
  (forall B, blk_at p (sb sp) = Some B -> quiet anch stop B = true) -> traps p sp o vs ->
  comes_to sp o vs.
Proof.
  intros Cm Quiet Tr.
  destruct (lockstep_calm _ Cm) as [fr [gp [gq [eq [Wy [Ng [Cg Gs]]]]]]].
  destruct (ways_ok _ _ _ _ _ Wy (fun _ => Cg))
    as [ep [sq [a [ep' [eq' [Np [Nq [Sy [_ [Fst [Bk [Cs _]]]]]]]]]]]].
  specialize (Fst eq_refl). specialize (Bk eq_refl).
  pose proof (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy) as [Anp _].
  destruct (nreach_same _ _ _ _ _ _ _ _ Np) as [Wp Tp].
  destruct (at_anchor p sp) eqn:A.
  - (* The operation is an anchor. *)
    assert (ep = sp).
    { pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ng Np Anp) as Y. eapply nreach_anchor; eauto. }
    subst ep. rewrite (Bk Gs) in Cs. destruct Cs as [[o1 [v1 [v2 [E _]]]]|Rd]; [discriminate|].
    pose proof Tr as [B [i [x [y [E [N _]]]]]].
    pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs Anc Id]. unfold aid in Id. rewrite E in Id.
    assert (Ida: pid B (sk sp) = a) by congruence. pose proof (invp _ Rp) as Ip.
    assert (St: stop a = false).
    { pose proof (Quiet _ E) as Qb. unfold quiet in Qb.
      destruct (inv_at _ _ _ _ _ Ip) as [B0 [E0 K0]]. replace B0 with B in * by congruence.
      assert (Kl: sk sp < S (bn B)) by lia. pose proof (below_ok _ _ Qb _ Kl) as Z. simpl in Z.
      unfold Paths.at_anchor in A. rewrite E in A. rewrite A, Ida in Z. simpl in Z.
      now apply negb_true_iff. }
    pose proof (okanch L T anch p q K pair_ok _ Lt_a In_a St) as CA. unfold chk_anchor in CA.
    rewrite At in CA. cbn [fst snd] in CA. rewrite E, N in CA.
    destruct (blk_at q (sb sq)) as [Bq|] eqn:Eq; [|discriminate].
    apply andb_true_iff in CA. destruct CA as [_ CA].
    destruct (inst_at Bq (sk sq)) as [[i' x' o' y'|i' o' y' r']|] eqn:Nq'; try discriminate.
    destruct (pure_anchor sp sq a None eq' B Bq i x o y i' x' o' y' Rd St E Eq N Nq'
      (fun _ => Cm)) as [[o1 [vs1 [vs' [[Q|[_ T1]] [Al S1]]]]]|[_ [Ps _]]].
    + discriminate.
    + destruct (traps_once L M T halt anch stop p startp sp sp o1 vs1 o vs) as [_ [-> ->]]; auto.
      eapply status_comes; eauto.
    + now destruct (traps_passes _ _ _ _ _ Tr).
  - (* It is on the way to an anchor. *)
    assert (Ev: ep' = Some (o, vs) /\ sw sp = sw gp /\ str sp = str gp).
    { destruct ep' as [[o1 vs1]|].
      - destruct Fst as [s1 [C1 [T1 [W1 R1]]]].
        destruct (traps_once L M T halt anch stop p startp s1 sp o1 vs1 o vs) as [-> [-> ->]]; auto.
        eapply calm_trans; eauto.
      - exfalso. pose proof (calm_behind _ _ _ Ng Np Anp Fst) as Ce.
        destruct (calm_first _ _ _ _ _ _ _ _ _ Ce) as [->|[s1 [P1 _]]]; [congruence|].
        now destruct (traps_passes _ _ _ _ _ Tr). }
    destruct Ev as [-> [Ws Ts]]. assert (Ce: comes_to ep o vs).
    { destruct Cs as [[o1 [vs1 [vs' [E1 [Al S1]]]]]|Rd].
      - inversion E1; subst o1 vs1. eapply status_comes; eauto.
      - exact (owed_trap (S (rank X a)) _ _ _ _ _ _ (Nat.lt_succ_diag_r _) Rd). }
    destruct Ce as [s1 [vs' [C1 [T1 [Al [W1 R1]]]]]]. exists s1, vs'.
    repeat split; auto; congruence.
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
  subst ep. rewrite (Bk eq_refl Gs) in Cs.
  destruct Cs as [[o1 [v1 [v2 [E1 _]]]]|Rd]; [discriminate|].
  destruct (result_from L M T anch p q K F rules pair_ok args w args_ok args_ty
    (fun e => at_anchor q e = true -> calm q startq e) gp gq sp o vs)
    as [e [Req [Eq [Wq Tq]]]]; auto.
  - intros e Ne Ae. assert (e = sq).
    { pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ne Nq Anq) as Y. symmetry.
      eapply nreach_anchor; eauto. }
    subst e. pose proof Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs _ Id]. unfold aid in Id.
    rewrite E in Id. assert (Ida: pid B (sk sp) = a) by congruence. unfold pid in Ida.
    rewrite N in Ida. rewrite Ida in Sp. pose proof (at_anchor_ok a Lt_a In_a Sp) as Co.
    unfold chk_owed in Co. rewrite At in Co. cbn [fst snd] in Co. rewrite E, N, Nil in Co.
    destruct (blk_at q (sb sq)) as [Bq|]; [|discriminate].
    destruct (inst_at Bq (sk sq)); [discriminate|]. apply andb_true_iff in Co.
    destruct Co as [Ow _]. simpl in Ow. rewrite andb_true_r in Ow. apply negb_true_iff in Ow.
    destruct (not_owed _ Ow) as [_ O2]. destruct Rd as [_ [lp [lq [_ [Mq [[_ _ _ Eq' Ss] _]]]]]].
    rewrite O2 in Mq. destruct lq; [|discriminate]. simpl in Eq'. now subst eq'.
  - exact (proj1 Wy).
  - exists e. split; [|auto]. apply Req. destruct Eq as [Bq [EBq [Nq' [_ [_ [Aq _]]]]]].
    unfold Paths.at_anchor, is_anch. now rewrite EBq, Nq'.
Qed.

End Matched.
Print Assumptions traps_together.
