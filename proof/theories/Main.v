(** The theorem. All hypotheses are in its statement: [Faithful] and [RulesHold] (Terms.v). *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live.

Section Main.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable anch : nat -> bool.
Variables (p q : version op) (K : claims).
Variable demands : op -> bool.
Variables (past ahead : nat -> bool) (need armed : nat -> nat -> set).

(** What the judge computes for a pair of versions, and for an entry between them. *)
Definition accept_pair : bool :=
  chk_pair L T anch p q K && chk_clean L T anch (stopped K) p past ahead &&
  chk_live L T q demands need armed.
Definition covers (E : entry op) : bool :=
  for_all (fun x => match get x (assigns E) with Some _ => true | None => false end)
          (need (fst (tgt E)) (snd (tgt E))).
Definition accept_entry (E : entry op) : bool :=
  past (fst (src E)) && ahead (fst (src E)) && chk_entry L T anch p q K E && covers E.

(** Runs of the versions, from the start of the function and from any state. *)
Definition run (v : version op) : st V W -> st V W -> Prop := reach L M T anch nowhere v.
(** The contents of values after an entry has fired. Values that it does not provide hold junk. *)
Definition fired (E : entry op) (env junk : nat -> V) : nat -> V :=
  fun x => match get x (assigns E) with Some o => fire M E env o | None => junk x end.
(** The observable end of a run: a return or a trap instruction, and the values that it shows,
  memory
    among them. *)
Definition result (v : version op) (s : st V W) (o : op) (vs : list V) : Prop :=
  exists B, blk_at v (sb s) = Some B /\ inst_at B (sk s) = None /\ les (lt B) = [] /\
  lo (lt B) = o /\ vs = map (se s) (la (lt B)).

Section Runs.
Variable v : version op.
Notation step := (step1 L M T anch nowhere v).
Lemma grows a b : run v a b -> exists l, str b = str a ++ l /\ (l = [] -> sw b = sw a).
Proof.
  induction 1 as [|s s' Rn [l [E Q]] St]; [exists []; split; [now rewrite app_nil_r|auto]|].
  unfold step1 in St. destruct (blk_at v (sb s)) as [B|]; [|discriminate].
  unfold nowhere in St. rewrite andb_false_r in St.
  destruct (inst_at B (sk s)) as [[i x o y|i o y r]|].
  - inversion St; subst. exists l. auto.
  - destruct (effsem M o (map (se s) y) (sw s)). inversion St; subst. exists (l ++ [i]). simpl.
    rewrite E, app_assoc. split; auto. intro N. destruct l; discriminate.
  - destruct (taken M (lt B) (se s)); [|discriminate]. unfold enter in St.
    destruct (blk_at v (dst e)); [|discriminate]. inversion St; subst. exists l. auto.
Qed.
Lemma either a b c : run v a b -> run v a c -> run v b c \/ run v c b.
Proof.
  intros Rb Rc. induction Rb as [|s s' Rs IH St]; auto. destruct IH as [G|G].
  - destruct (reach_first L M T anch v nowhere _ _ G) as [->|[s1 [S1 R1]]].
    + right. econstructor; [constructor|]. exact St.
    + left. replace s' with s1 by congruence. exact R1.
  - right. econstructor; eauto.
Qed.
Lemma result_stuck s o vs : result v s o vs -> step s = None.
Proof.
  intros [B [E [N [Nil _]]]]. unfold step1. rewrite E, N.
  destruct (is_anch anch B (sk s) && nowhere _); auto. unfold taken, edge_no. rewrite Nil. simpl.
  now destruct (choose M _ _).
Qed.
End Runs.

Lemma result_anchor s o vs args w : Faithful L M -> RulesHold L M T ->
  chk_pair L T anch p q K = true -> length args = arity p ->
  args_typed M T args ->
  reach L M T anch (stopped K) p (start M T p args w) s -> result p s o vs ->
  at_anchor anch p s = true.
Proof.
  intros F Rl Ok Ar Ta Rs Rt. destruct (lockstep L M T anch p q K F Rl Ok args w Ar Ta s Rs)
    as [gp [gq [G Ng]]].
  destruct (gap_sync L M T anch p q K F Rl Ok args w Ar Ta _ _ G) as [ep [eq [a [Np [Nq Sy]]]]].
  pose proof (nreach_on L M T anch (stopped K) p _ _ _ Ng Np (proj1 (sy_anchor _ _ _ _ _ _ _ _ _ _ _
    _ Sy))) as X.
  inversion X as [|x s1 y A S1 R1]; subst.
  - exact (proj1 (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy)).
  - apply stop_less in S1. rewrite (result_stuck _ _ _ _ Rt) in S1. discriminate.
Qed.

(** A result at an anchor in code without a stopped anchor is an end of the run. *)
Lemma result_ends s o vs : Inv L M T p s ->
  (forall B, blk_at p (sb s) = Some B -> quiet anch (stopped K) B = true) ->
  at_anchor anch p s = true -> result p s o vs -> ends anch K p s o vs.
Proof.
  intros I Quiet An [B [EB [N [Nil [Lo Vs]]]]]. unfold at_anchor in An. rewrite EB in An.
  exists B. repeat split; auto.
  - unfold is_anch in An. now rewrite N in An.
  - pose proof (Quiet _ EB) as Qb. unfold quiet in Qb.
    destruct (inv_at _ _ _ _ _ I) as [B0 [E0 K0]]. replace B0 with B in * by congruence.
    assert (Kl: sk s < S (bn B)) by lia. pose proof (below_ok _ _ Qb _ Kl) as G. simpl in G.
    rewrite An in G. simpl in G. apply negb_true_iff in G. unfold pid in G. now rewrite N in G.
Qed.
(** Where one version has executed the effects that the other executes later, neither executes one
    in between. *)
Lemma worlds_stay sp sp' sq sq' : run p sp sp' -> run q sq' sq ->
  sw sq = sw sp -> str sq = str sp -> sw sq' = sw sp' -> str sq' = str sp' ->
  sw sq = sw sp' /\ str sq = str sp'.
Proof.
  intros Rp Rq Ew Et Ew' Et'. destruct (grows q _ _ Rq) as [l [El Wl]].
  destruct (grows p _ _ Rp) as [m [Em Wm]].
  assert (Z: str sq = str sq ++ m ++ l).
  { rewrite El at 1. rewrite Et', Em, <- Et. now rewrite app_assoc. }
  assert (N: m ++ l = []).
  { apply (f_equal (@length nat)) in Z. rewrite app_length in Z.
    destruct (m ++ l); auto. simpl in Z. lia. }
  apply app_eq_nil in N. destruct N as [-> ->]. rewrite app_nil_r in Em.
  rewrite (Wm eq_refl). split; congruence.
Qed.

(** Let the checks accept a pair of versions and an entry, and let the source version come to the
    source point. Then the target version, started on the same input, comes to the landing point in
    the same world, after the same effects. The entry gives every value that it provides the
      contents
    that it has there. The target version, going on from the fired state, does what the source
    version would have done: it comes through the same worlds by the same effects, and if the source
    version ends, it ends with the same result in the same world. *)
Theorem transition_right (E : entry op) args w sp :
  Faithful L M -> RulesHold L M T ->
  accept_pair = true -> accept_entry E = true -> length args = arity p ->
  args_typed M T args ->
  run p (start M T p args w) sp -> (sb sp, sk sp) = src E ->
  exists sq, run q (start M T q args w) sq /\ (sb sq, sk sq) = tgt E /\
    sw sq = sw sp /\ str sq = str sp /\
    forall env junk, (forall x, mem x (requires E) = true -> env x = se sp x) ->
    let t := with_env sq (fired E env junk) in
    (forall x o, get x (assigns E) = Some o -> se t x = se sq x) /\
    (forall sp', run p sp sp' -> exists t', run q t t' /\ sw t' = sw sp' /\ str t' = str sp') /\
    (forall sp' o vs, run p sp sp' -> result p sp' o vs ->
      exists t', run q t t' /\ result q t' o vs /\ sw t' = sw sp' /\ str t' = str sp').
Proof.
  intros F Rl AP AE Ar Ta Rp At. unfold accept_pair in AP. apply andb_true_iff in AP.
  destruct AP as [AP Lv]. apply andb_true_iff in AP. destruct AP as [Pr Cl].
  unfold accept_entry in AE. apply andb_true_iff in AE. destruct AE as [AE Cv].
  apply andb_true_iff in AE. destruct AE as [AE Ce]. apply andb_true_iff in AE.
  destruct AE as [Pa Ah]. pose proof (okp L T anch p q K Pr) as Okp.
  pose proof (okq L T anch p q K Pr) as Okq. pose proof (table_ok L T anch p q K Pr) as Tok.
  assert (Arq: length args = arity q) by (eapply args_okq; eauto).
  rewrite <- At in Pa, Ah. cbn [fst snd] in Pa, Ah.
  assert (Rs: reach L M T anch (stopped K) p (start M T p args w) sp) by (eapply past_ok; eauto).
  destruct (entry_right L M T anch p q K F Rl Pr args w Ar Ta E sp Ce Rs At)
    as [sq [Rq [Aq [Eqw [Eqt Right]]]]].
  exists sq. assert (Rq': run q (start M T q args w) sq) by (eapply reach_run; eauto).
  split; auto. split; auto. split; auto. split; auto. intros env junk Henv t.
  assert (Prov: forall x o, get x (assigns E) = Some o -> se t x = se sq x).
  { intros x o G. simpl. unfold fired. rewrite G. eapply Right; eauto. }
  split; auto.
  assert (AI: forall s, run q (start M T q args w) s -> Inv L M T q s).
  { intros s H. exact (version_sound L M T anch nowhere q F Rl Tok Okq args w s Arq Ta H). }
  assert (Al: Alike need sq t).
  { constructor; simpl; auto. intros x Hx. unfold covers in Cv. rewrite <- Aq in Cv. simpl in Cv.
    pose proof (for_all_ok _ _ _ Cv Hx) as G. simpl in G.
    destruct (get x (assigns E)) as [o|] eqn:Gx; [|discriminate]. eapply Prov; eauto. }
  (* The state of the target version that corresponds to a later state of the source version lies
     behind the landing point, up to steps without effects. *)
  assert (Go: forall sq', run q sq sq' -> exists t', run q t t' /\ Alike need sq' t').
  { intros sq' H. apply (going_on L M T anch nowhere q demands need armed F Tok Okq Lv sq t sq');
    auto.
    intros x Hx. apply AI. eapply reach_trans; eauto. }
  split.
  - intros sp' Rp'. destruct (ahead_ok L M T anch (stopped K) p past ahead F Rl Tok Okp Cl
      args w Ar Ta sp sp' Rp Ah Rp') as [Rs' _].
    destruct (lockstep L M T anch p q K F Rl Pr args w Ar Ta sp' (reach_trans L M T anch p _ _ _ _
      Rs Rs'))
      as [gp [gq [G Ng]]].
    destruct (nreach_same _ _ _ _ _ _ _ _ Ng) as [Wg Tg]. destruct G as [Rgp Rgq Gw Gt _].
    apply reach_run in Rgq. destruct (either q _ _ _ Rq' Rgq) as [H|H].
    + destruct (Go _ H) as [t' [Rt Al']]. exists t'. split; auto.
      split; [rewrite (al_w _ _ _ Al'); congruence|rewrite (al_tr _ _ _ Al'); congruence].
    + exists t. split; [constructor|]. apply (worlds_stay sp sp' sq gq); auto; congruence.
  - intros sp' o vs Rp' Rt.
    destruct (ahead_ok L M T anch (stopped K) p past ahead F Rl Tok Okp Cl
      args w Ar Ta sp sp' Rp Ah Rp') as [Rs' Quiet].
    pose proof (reach_trans L M T anch p _ _ _ _ Rs Rs') as Rall.
    assert (Run': run p (start M T p args w) sp') by (eapply reach_trans; eauto).
    pose proof (result_anchor _ _ _ _ _ F Rl Pr Ar Ta Rall Rt) as An.
    pose proof (result_ends _ _ _ (invp L M T anch p q K F Rl Pr args w Ar Ta _ Rall) Quiet An Rt)
      as Ends.
    destruct (same_result L M T anch p q K F Rl Pr args w Ar Ta sp' o vs Rall Ends)
      as [eq [Req [Eq [Wq Tq]]]].
    destruct Eq as [Bq [EBq [Nq [Nilq [Loq [_ [_ Vq]]]]]]].
    assert (Stuck: step1 L M T anch nowhere q eq = None).
    { apply result_stuck with (o := o) (vs := vs). exists Bq. auto. }
    apply reach_run in Req. pose proof (run_on L M T anch q _ _ _ Rq' Req Stuck) as H.
    destruct (Go _ H) as [t' [Rt' Al']]. exists t'. split; auto. split.
    + exists Bq. rewrite (al_b _ _ _ Al'), (al_k _ _ _ Al'). repeat split; auto. rewrite Vq.
      symmetry. pose proof (AI _ Req) as Iq.
      destruct (live_at L T q demands need armed Lv _ _ (inv_live _ _ _ _ _ Iq) EBq) as [_ [_ LL]].
      unfold chk_need_last in LL. apply andb_true_iff in LL. destruct LL as [Nd _].
      eapply needs_map; eauto. intros x Hx. apply (al_env _ _ _ Al').
      apply inst_none in Nq. destruct (inv_at _ _ _ _ _ Iq) as [B0 [E0 K0]].
      replace B0 with Bq in * by congruence. replace (sk eq) with (bn Bq) by lia. exact Hx.
    + split; [rewrite (al_w _ _ _ Al'); auto|rewrite (al_tr _ _ _ Al'); auto].
Qed.
End Main.
Print Assumptions transition_right.
