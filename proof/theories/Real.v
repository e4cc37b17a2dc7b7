(** Real runs: the source version comes to the source point without a trap, and the entry fires.

    No step and no replay traps. The target version goes on from the fired state as the source
    version would have gone on, traps among them. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Traps Walk Owed Matched Landing.

Section Real.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variable anch : nat -> bool.
Variables (p q : version op) (K : claims).
Variable X : owing.
Variables (past ahead : nat -> bool) (need armed : nat -> nat -> set).
Notation D := (D M T).
Notation vcl := (vcl T).
Notation ag := (ag T K).
Notation AL := (AL T).
Notation stop := (stopped K).
Notation start := (start M T).
Notation passes := (passes halt).
Notation calm := (calm L M T halt anch nowhere).
Notation traps := (traps halt).

(** ** The check of the steps of an entry *)
Section Checks.
Variable E : entry op.
(** Claimed, by step: values of the source version and of the target version whose operations vouch
    for the step. *)
Variables (here_by far_by : nat -> nat).
Definition vouches (v : version op) (y : nat) (at_ : nat * nat) (o : op)
  (fit : class2 -> nat -> bool) (ks : list class2) : bool :=
  availb v y (fst at_) (snd at_) &&
  match site_of v y with
  | Some (o', a') =>
    match vouch H o' o with
    | Some n => all2 fit (firstn n ks) (map (vcl v) (firstn n a'))
    | None => false
    end
  | None => false
  end.
(** A class of the target version at the landing point that an operand has. *)
Definition fits_there (a : nat) (b bq : binds) (k : class2) (c : nat) : bool :=
  fits_far b k c && AL (ag a) c && stays T bq c.
Definition known_here (k : class2) : option C :=
  match fst k with Some c => constant L T c | None => None end.
Definition step_calm (a : nat) (b bq : binds) (known : list class2) (s : step op) : bool :=
  let ks := map (opcls T p E b known) (sa s) in
  negb (can_trap H (so s)) || safe H (so s) (map known_here ks) ||
  vouches p (here_by (length known)) (src E) (so s) fits_here ks ||
  vouches q (far_by (length known)) (tgt E) (so s) (fits_there a b bq) ks.
Fixpoint steps_calm (a : nat) (b bq : binds) (l : list (step op)) (known : list class2) : bool :=
  match l with
  | [] => true
  | s :: r =>
    step_calm a b bq known s &&
    match step_class L T p E b known s with
    | Some k => steps_calm a b bq r (known ++ [k]) | None => false end
  end.
Definition chk_fire : bool :=
  match from L T anch p (fst (src E)) (snd (src E)), from L T anch q (fst (tgt E)) (snd (tgt E))
    with
  | Some (csp, ap), Some (csq, aq) =>
    match aid p (fst ap) (snd ap) with
    | Some a => steps_calm a (crosses_all T p [] csp) (crosses_all T q [] csq) (steps E) []
    | None => false
    end
  | _, _ => false
  end.
End Checks.
(** No step traps in this world. *)
Fixpoint steps_pass (env : nat -> V) (l : list (step op)) (rs : list V) (w : W) : Prop :=
  match l with
  | [] => True
  | s :: r => let vs := map (content M env rs) (sa s) in
              halt (so s) vs w = false /\ steps_pass env r (rs ++ [opsem M (so s) vs]) w
  end.

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis pair_ok : accept_pair L T anch p q K (can_trap H) past ahead need armed = true.
Hypothesis traps_ok : chk_traps L T H anch p q K X = true.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
Lemma chk_pair_ok : chk_pair L T anch p q K = true.
Proof. unfold accept_pair in pair_ok. bools. auto. Qed.
Lemma clean_ok : chk_clean L T anch stop p past ahead = true.
Proof. unfold accept_pair in pair_ok. bools. auto. Qed.
Lemma live_ok : chk_live L T q (can_trap H) need armed = true.
Proof. unfold accept_pair in pair_ok. bools. auto. Qed.
Let tok : chk_table L T = true := table_ok L T anch p q K chk_pair_ok.
Let okp : chk_version L T anch p = true := okp L T anch p q K chk_pair_ok.
Let okq : chk_version L T anch q = true := okq L T anch p q K chk_pair_ok.
Let argsq : length args = arity q := args_okq L T anch p q K chk_pair_ok args args_ok.

(** ** Steps do not trap *)
Section Fire.
Variables (E : entry op) (here_by far_by : nat -> nat).
Variables (sp sq : st V W) (a : nat) (ap aq : nat * nat) (csp csq : list crossing).
Variables (ep eq : st V W) (env : nat -> V).
Hypothesis landed : Landed L M T anch p q K E sp sq a ap aq csp csq ep eq.
Hypothesis inv_p : Inv L M T p sp.
Hypothesis at_p : (sb sp, sk sp) = src E.
Hypothesis at_q : (sb sq, sk sq) = tgt E.
Hypothesis flags_p : flags M T halt p sp.
Hypothesis flags_q : flags M T halt q sq.
Hypothesis same_w : sw sq = sw sp.
Hypothesis env_ok : forall x, mem x (requires E) = true -> env x = se sp x.
Let b := crosses_all T p [] csp.
Let bq := crosses_all T q [] csq.
Notation means := (means M T (ss sp) (ss ep)).
Lemma vouches_ok v y at_ o fit ks xs s : (sb s, sk s) = at_ -> sw s = sw sp ->
  flags M T halt v s -> (forall k x c, means k x -> fit k c = true -> x = D (ss s) c) ->
  Forall2 means ks xs -> vouches v y at_ o fit ks = true -> halt o xs (sw sp) = false.
Proof.
  intros <- Sw Fl Fit Fk Vo. unfold vouches in Vo. cbn [fst snd] in Vo.
  apply andb_true_iff in Vo. destruct Vo as [Av Vo].
  destruct (site_of v y) as [[o' a']|] eqn:Si; [|discriminate].
  destruct (vouch H o' o) as [n|] eqn:Vh; [|discriminate].
  pose proof (Fl _ _ _ Av Si) as Nh. rewrite Sw in Nh.
  apply (vouch_ok _ _ _ FT _ _ _ (map (fun z => D (ss s) (vcl v z)) a') _ _ Vh); auto.
  assert (Fn: Forall2 means (firstn n ks) (firstn n xs)).
  { clear -Fk. revert n. induction Fk as [|k x ks xs Hk Fk IH]; intros [|n]; simpl; constructor;
      auto. }
  rewrite (all2_ok M T (ss sp) (ss ep) fit (ss s) Fit _ _ Fn _ Vo), map_map, firstn_map.
  reflexivity.
Qed.
Lemma contents_ok x : mem x (requires E) = true ->
  availb p x (fst (src E)) (snd (src E)) = true -> env x = D (ss sp) (vcl p x).
Proof.
  intros Rq Av. rewrite env_ok by auto. apply (inv_right _ _ _ _ _ inv_p).
  rewrite <- at_p in Av. exact Av.
Qed.
Lemma ks_ok known rs l : Forall2 means known rs ->
  Forall2 means (map (opcls T p E b known) l) (map (content M env rs) l).
Proof.
  intro Fk. induction l as [|o l IH]; simpl; constructor; auto.
  apply (opcls_ok L M T anch p q K chk_pair_ok E b (ss sp) (ss ep) env); auto.
  - apply landed.
  - apply contents_ok.
Qed.
Lemma step_calm_ok known rs s : Forall2 means known rs ->
  step_calm E here_by far_by a b bq known s = true ->
  halt (so s) (map (content M env rs) (sa s)) (sw sp) = false.
Proof.
  intros Fk Sc. unfold step_calm in Sc. pose proof (ks_ok _ _ (sa s) Fk) as Ks.
  set (ks := map (opcls T p E b known) (sa s)) in *.
  apply orb_true_iff in Sc. destruct Sc as [Sc|Sc]; [apply orb_true_iff in Sc;
    destruct Sc as [Sc|Sc]; [apply orb_true_iff in Sc; destruct Sc as [Sc|Sc]|]|].
  - apply (can_ok _ _ _ FT). now apply negb_true_iff.
  - apply (safe_ok _ _ _ FT _ _ _ _ Sc). unfold known_here, Traps.known.
    clear -Ks tok F. induction Ks as [|k x ks xs [Hk _] Ks IH]; simpl; constructor; auto.
    destruct (fst k) as [c|]; auto. destruct (constant L T c) as [z|] eqn:Cz; auto.
    rewrite (Hk c) by auto. now apply (constant_D L M T F tok).
  - apply (vouches_ok p _ _ _ _ _ _ sp at_p eq_refl flags_p) with (2 := Ks) (3 := Sc).
    intros k x c Mk. now apply (fits_here_ok M T (ss sp) (ss ep)).
  - apply (vouches_ok q _ _ _ _ _ _ sq at_q same_w flags_q) with (2 := Ks) (3 := Sc).
    intros k x c Mk Ft. unfold fits_there in Ft.
    apply andb_true_iff in Ft. destruct Ft as [Ft St]. apply andb_true_iff in Ft.
    destruct Ft as [Ff Al].
    rewrite (fits_far_ok M T b (ss sp) (ss ep) (ld_bp _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ landed)
      _ _ _ Mk Ff).
    rewrite (agree_D L M T anch p q K chk_pair_ok (ag a) (ss ep) (ss eq)) by
      (try apply landed; auto).
    eapply (stays_ok L M T anch p q K chk_pair_ok bq); eauto. apply landed.
Qed.
Lemma steps_calm_ok l : forall known rs, Forall2 means known rs ->
  steps_calm E here_by far_by a b bq l known = true -> steps_pass env l rs (sw sp).
Proof.
  induction l as [|s l IH]; simpl; intros known rs Fk Sc; auto.
  apply andb_true_iff in Sc. destruct Sc as [Sc Rest].
  destruct (step_class L T p E b known s) as [k|] eqn:Ck; [|discriminate].
  split; [eapply step_calm_ok; eauto|]. apply (IH (known ++ [k])); auto. apply Forall2_app; auto.
  constructor; auto.
  eapply (step_ok L M T anch p q K F rules chk_pair_ok args args_ok E b (ss sp) (ss ep)
    env); eauto.
  - apply landed.
  - apply (inv_typed _ _ _ _ _ inv_p).
  - apply (inv_typed _ _ _ _ _ (ld_inv _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ landed)).
  - apply contents_ok.
Qed.
Lemma fire_ok : chk_fire E here_by far_by = true -> steps_pass env (steps E) [] (sw sp).
Proof.
  unfold chk_fire. destruct landed as [Lp Lq Id Bp Bq I Ag]. rewrite Lp, Lq, Id.
  apply steps_calm_ok. constructor.
Qed.
End Fire.

(** ** Going on *)
Lemma alike_operands s t B i x o y : Inv L M T q s -> Alike need s t ->
  blk_at q (sb s) = Some B -> inst_at B (sk s) = Some (IPure i x o y) -> can_trap H o = true ->
  map (se t) y = map (se s) y.
Proof.
  intros I Al E N Ct. destruct (live_at L T q (can_trap H) need armed live_ok _ _
    (inv_live _ _ _ _ _ I) E) as [LI _]. pose proof (LI _ _ N) as Q. simpl in Q.
  rewrite Ct, orb_true_r in Q. simpl in Q. apply andb_true_iff in Q. destruct Q as [_ Nd].
  eapply needs_map; eauto. apply Al.
Qed.
Lemma alike_passes s t : Inv L M T q s -> Alike need s t -> (passes q s <-> passes q t).
Proof.
  intros I Al. pose proof Al as [Hb Hk Hw Ht He]. unfold Traps.passes. rewrite Hb, Hk, Hw.
  destruct (blk_at q (sb s)) as [B|] eqn:E; [|tauto].
  destruct (inst_at B (sk s)) as [[i x o y|]|] eqn:N; try tauto.
  destruct (can_trap H o) eqn:Ct; [|rewrite !(can_ok _ _ _ FT) by auto; tauto].
  rewrite (alike_operands s t B i x o y) by auto. tauto.
Qed.
Lemma calm_on_alike s t s' : calm q (start q args w) s -> Alike need s t -> calm q s s' ->
  exists t', calm q t t' /\ Alike need s' t'.
Proof.
  intros Cs Al G. induction G as [|s1 s2 G [t1 [Ct1 Al1]] Ps St].
  - exists t. split; auto. constructor.
  - assert (I: Inv L M T q s1).
    { eapply (calm_inv L M T halt anch nowhere q F rules tok okq args w argsq args_ty).
      eapply calm_trans; eauto. }
    destruct (alike_step L M T anch nowhere q (can_trap H) need armed F tok okq live_ok _ _ _
      I Al1 St) as [t2 [St2 Al2]].
    exists t2. split; auto. eapply CS; eauto. now apply (alike_passes s1).
Qed.

(** ** Stopped anchors *)
Lemma calm_past s : calm p (start p args w) s -> past (sb s) = true ->
  Traps.calm L M T halt anch stop p (start p args w) s.
Proof.
  induction 1 as [|s s' Cm IH Ps St]; intro Pa; [constructor|].
  pose proof (calm_inv L M T halt anch nowhere p F rules tok okp args w args_ok args_ty _ Cm) as I.
  destruct (inv_at _ _ _ _ _ I) as [B [E K0]].
  destruct (clean_at L T anch stop p past ahead clean_ok _ _ (inv_live _ _ _ _ _ I) E) as [Q [U _]].
  assert (Pb: past (sb s) = true).
  { destruct (step_where L M T anch p F tok okp _ _ _ I E St) as [Q'|[e [Ie Q']]]; [congruence|].
    destruct (past (sb s)) eqn:Z; auto. rewrite Q' in Pa. now rewrite (U eq_refl e Ie) in Pa. }
  eapply CS; eauto. eapply (quiet_step L M T anch stop p); eauto.
Qed.
Lemma calm_free v s0 s : Traps.calm L M T halt anch stop v s0 s -> calm v s0 s.
Proof. induction 1; [constructor|]. eapply CS; eauto. eapply stop_less; eauto. Qed.
(** A calm run in code that leads to no stopped anchor. *)
Lemma calm_ahead s s' : Traps.calm L M T halt anch stop p (start p args w) s ->
  ahead (sb s) = true -> calm p s s' ->
  Traps.calm L M T halt anch stop p (start p args w) s' /\
  forall B, blk_at p (sb s') = Some B -> quiet anch stop B = true.
Proof.
  intros Cs A G.
  assert (Z: Traps.calm L M T halt anch stop p (start p args w) s' /\ ahead (sb s') = true).
  { induction G as [|s1 s2 G [C1 A1] Ps St]; auto.
    pose proof (calm_inv L M T halt anch stop p F rules tok okp args w args_ok args_ty _ C1) as I.
    destruct (inv_at _ _ _ _ _ I) as [B [E K0]].
    destruct (clean_at L T anch stop p past ahead clean_ok _ _ (inv_live _ _ _ _ _ I) E)
      as [_ [_ U]]. destruct (U A1) as [Q Ue]. split.
    - eapply CS; eauto. eapply (quiet_step L M T anch stop p); eauto.
    - destruct (step_where L M T anch p F tok okp _ _ _ I E St) as [Q'|[e [Ie Q']]]; rewrite Q';
        auto. }
  destruct Z as [Z A']. split; auto. intros B E.
  pose proof (calm_inv L M T halt anch stop p F rules tok okp args w args_ok args_ty _ Z) as I.
  destruct (clean_at L T anch stop p past ahead clean_ok _ _ (inv_live _ _ _ _ _ I) E)
    as [_ [_ U]]. now apply U.
Qed.

(** Let the source version come to the source point without a trap, and fire the entry there. No
    step traps. The target version, started on the same input, comes to the landing point without a
    trap, and goes on from the fired state as the source version would have gone on: as far as that
    does not trap, neither does the target version; it ends with the same result, or with a trap of
    the same operation on the same operands, in the same world and after the same effects. A store
    that traps may have another value to store. *)
Theorem real_right (E : entry op) here_by far_by sp :
  accept_entry L T anch p q K past ahead need E = true -> chk_fire E here_by far_by = true ->
  chk_passed L T H anch p q K X E = true -> calm p (start p args w) sp -> (sb sp, sk sp) = src E ->
  exists sq, calm q (start q args w) sq /\ (sb sq, sk sq) = tgt E /\
    sw sq = sw sp /\ str sq = str sp /\
    forall env junk, (forall x, mem x (requires E) = true -> env x = se sp x) ->
    let t := with_env sq (fired M E env junk) in
    steps_pass env (steps E) [] (sw sp) /\
    (forall x o, get x (assigns E) = Some o -> se t x = se sq x) /\
    (forall sp', calm p sp sp' -> exists t', calm q t t' /\ sw t' = sw sp' /\ str t' = str sp') /\
    (forall sp' o vs, calm p sp sp' -> result p sp' o vs ->
      exists t', calm q t t' /\ result q t' o vs /\ sw t' = sw sp' /\ str t' = str sp') /\
    (forall sp' o vs, calm p sp sp' -> traps p sp' o vs ->
      exists t' vs', calm q t t' /\ traps q t' o vs' /\ alike H o vs vs' /\ sw t' = sw sp' /\
        str t' = str sp').
Proof.
  intros AE Cf Cd Cm At. unfold accept_entry in AE. apply andb_true_iff in AE.
  destruct AE as [AE Cv].
  apply andb_true_iff in AE. destruct AE as [AE Ce]. apply andb_true_iff in AE.
  destruct AE as [Pa Ah]. rewrite <- At in Pa, Ah. cbn [fst snd] in Pa, Ah.
  pose proof (calm_past _ Cm Pa) as Cp.
  destruct (landing_calm L M T H halt anch p q K X F rules FT chk_pair_ok traps_ok args w args_ok
    args_ty E sp Ce Cd Cp At)
    as [sq [Rq [Aq [Ew [Et [[a [ap [aq [csp [csq [ep [eq Ld]]]]]]] Right]]]]]].
  pose proof (calm_free q _ _ Rq) as Cfq.
  exists sq. split; auto. split; auto. split; auto. split; auto. intros env junk Henv t.
  assert (Prov: forall x o, get x (assigns E) = Some o -> se t x = se sq x).
  { intros x o Gx. simpl. unfold fired. rewrite Gx. eapply Right; eauto. }
  pose proof (calm_inv L M T halt anch stop p F rules tok okp args w args_ok args_ty _ Cp) as Ip.
  assert (AI: forall s, calm q (start q args w) s -> Inv L M T q s).
  { intros s. apply (calm_inv L M T halt anch nowhere q F rules tok okq args w argsq args_ty). }
  assert (Al: Alike need sq t).
  { constructor; simpl; auto. intros x Hx. unfold covers in Cv. rewrite <- Aq in Cv. simpl in Cv.
    pose proof (for_all_ok _ _ _ Cv Hx) as Gx. simpl in Gx.
    destruct (get x (assigns E)) as [o|] eqn:Ex; [|discriminate]. eapply Prov; eauto. }
  assert (Go: forall sq', calm q sq sq' -> exists t', calm q t t' /\ Alike need sq' t').
  { intros sq' Y. exact (calm_on_alike sq t sq' Cfq Al Y). }
  (* A run of the target version that ends where no step is left goes on from the landing point. *)
  assert (Behind: forall s, calm q (start q args w) s ->
    step1 L M T anch nowhere q s = None \/ ~ passes q s -> calm q sq s).
  { intros s Cs End. destruct (calm_either _ _ _ _ _ _ _ _ _ _ Cfq Cs) as [Y|Y]; auto.
    destruct (calm_first _ _ _ _ _ _ _ _ _ Y) as [->|[s1 [P1 [S1 _]]]]; [constructor|].
    destruct End as [End|End]; [congruence|contradiction]. }
  split; [|split; [auto|split; [|split]]].
  - apply (fire_ok E here_by far_by sp sq a ap aq csp csq ep eq env Ld); auto.
    + eapply (calm_flags L M T H halt anch stop p); eauto.
    + eapply (calm_flags L M T H halt anch stop q); eauto.
  - intros sp' Rp'. destruct (calm_ahead sp sp' Cp Ah Rp') as [Cs' _].
    destruct (worlds_together L M T H halt anch p q K X F rules FT chk_pair_ok traps_ok args w
      args_ok args_ty _ Cs') as [s1 [C1 [W1 [T1 Cases]]]]. apply calm_free in C1.
    assert (Or: calm q sq s1 \/ calm q s1 sq).
    { destruct Cases as [[o [vs Tr]]|_]; [left|eapply calm_either; eauto].
      apply Behind; auto. right. eapply traps_passes; eauto. }
    destruct Or as [Y|Y].
    + destruct (Go _ Y) as [t' [Rt Al']]. exists t'. split; auto.
      split; [rewrite (al_w _ _ _ Al'); congruence|rewrite (al_tr _ _ _ Al'); congruence].
    + exists t. split; [constructor|]. apply calm_reach in Y, Rp'.
      exact (worlds_stay L M T anch p q sp sp' sq s1 Rp' Y Ew Et W1 T1).
  - intros sp' o vs Rp' Rt. destruct (calm_ahead sp sp' Cp Ah Rp') as [Cs' Quiet].
    pose proof (result_anchor L M T anch p q K _ _ _ _ _ F rules chk_pair_ok args_ok args_ty
      (calm_reach _ _ _ _ _ _ _ _ _ Cs') Rt) as An.
    pose proof (result_ends L M T anch p K sp' o vs (calm_inv L M T halt anch stop p F rules tok okp
      args w args_ok args_ty _ Cs') Quiet An Rt) as Ends.
    destruct (ends_together L M T H halt anch p q K X F rules FT chk_pair_ok traps_ok args w
      args_ok args_ty _ _ _ Cs' Ends) as [e [Req [Eq [Wq Tq]]]].
    apply calm_free in Req.
    destruct Eq as [Bq [EBq [Nq [Nilq [Loq [_ [_ Vq]]]]]]].
    assert (Y: calm q sq e).
    { apply Behind; auto. left. apply result_stuck with (o := o) (vs := vs). exists Bq. auto. }
    destruct (Go _ Y) as [t' [Rt' Al']]. exists t'. split; auto. split.
    + exists Bq. rewrite (al_b _ _ _ Al'), (al_k _ _ _ Al'). repeat split; auto. rewrite Vq.
      symmetry. pose proof (AI _ Req) as Iq.
      destruct (live_at L T q (can_trap H) need armed live_ok _ _ (inv_live _ _ _ _ _ Iq) EBq)
        as [_ [_ LL]].
      unfold chk_need_last in LL. apply andb_true_iff in LL. destruct LL as [Nd _].
      eapply needs_map; eauto. intros x Hx. apply (al_env _ _ _ Al').
      apply inst_none in Nq. destruct (inv_at _ _ _ _ _ Iq) as [B0 [E0 K0]].
      replace B0 with Bq in * by congruence. replace (sk e) with (bn Bq) by lia. exact Hx.
    + split; [rewrite (al_w _ _ _ Al'); auto|rewrite (al_tr _ _ _ Al'); auto].
  - intros sp' o vs Rp' Tr. destruct (calm_ahead sp sp' Cp Ah Rp') as [Cs' Quiet].
    destruct (traps_together L M T H halt anch p q K X F rules FT chk_pair_ok traps_ok args w
      args_ok args_ty sp' o vs Cs' Quiet Tr) as [e [vs' [Ce' [Te [Alk [We Se]]]]]].
    apply calm_free in Ce'.
    assert (Y: calm q sq e) by (apply Behind; auto; right; eapply traps_passes; eauto).
    destruct (Go _ Y) as [t' [Rt' Al']]. exists t', vs'. split; auto. split; [|split; auto].
    + pose proof Al' as [Hb Hk Hw Htr He]. destruct Te as [B [i [x [y [EB [N [-> Ht]]]]]]].
      assert (Q: map (se t') y = map (se e) y).
      { eapply alike_operands; eauto. destruct (can_trap H o) eqn:Ct; auto.
        rewrite (can_ok _ _ _ FT) in Ht by auto. discriminate. }
      exists B, i, x, y. rewrite Hb, Hk, Hw, Q. auto.
    + split; [rewrite (al_w _ _ _ Al'); auto|rewrite (al_tr _ _ _ Al'); auto].
Qed.
End Real.
Print Assumptions real_right.
