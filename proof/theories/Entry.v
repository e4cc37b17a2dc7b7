(** Entries: firing one gives every value that it provides the contents that the target version
    has at the landing point. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair.

Inductive operand := Src (x : nat) | Stp (n : nat).
(** A step: its operation and operands, and the terms that it computes over the leaves at the source
    point and over those at the anchor. A replayed write is a step whose result is a memory. *)
Record step (op : Type) := Step {
  so : op; sa : list operand; here : option nat; far : option nat
}.
Arguments Step {op}. Arguments so {op}. Arguments sa {op}. Arguments here {op}. Arguments far {op}.
Record entry (op : Type) := Entry {
  src : nat * nat; tgt : nat * nat;
  requires : set; steps : list (step op); assigns : map_ operand
}.
Arguments Entry {op}. Arguments src {op}. Arguments tgt {op}. Arguments requires {op}.
Arguments steps {op}. Arguments assigns {op}.

Section Entry.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable anch : nat -> bool.
Variables (p q : version op) (K : claims).

Notation D := (D M T).
Notation AL := (AL T).
Notation vcl := (vcl T).
Notation ag := (ag T K).
Notation stop := (stopped K).
Notation reach := (reach L M T anch stop).
Notation nreach := (nreach L M T anch stop).
Notation start := (start M T).
Notation crosses_all := (crosses_all T).
Notation bound_ok := (bound_ok M T).
Notation Inv := (Inv L M T).

(** ** Firing an entry *)
Definition content (env : nat -> V) (rs : list V) (o : operand) : V :=
  match o with Src x => env x | Stp n => nth n rs (dflt M 0) end.
Definition run_steps (env : nat -> V) (l : list (step op)) (rs : list V) : list V :=
  fold_left (fun rs s => rs ++ [opsem M (so s) (map (content env rs) (sa s))]) l rs.
(** The contents that an operand of an assignment gives. *)
Definition fire (E : entry op) (env : nat -> V) (o : operand) : V :=
  content env (run_steps env (steps E) []) o.

(** ** The check *)
(** The class of an operand over the leaves at the source point, and over those at the anchor. *)
Definition class2 := (option nat * option nat)%type.
Section Checks.
Variable E : entry op.
Variable b : binds.   (* the bindings of the path from the source point *)
Definition stays (b : binds) (c : nat) : bool :=
  match b with [] => true | _ => AL (unbound b) c end.
Definition unaffected (c : nat) : option nat := if stays b c then Some c else None.
Definition opcls (known : list class2) (o : operand) : class2 :=
  match o with
  | Src x => if availb p x (fst (src E)) (snd (src E)) && mem x (requires E)
             then (Some (vcl p x), unaffected (vcl p x)) else (None, None)
  | Stp n => nth n known (None, None)
  end.
Definition is_some (o : option nat) (c : nat) : bool :=
  match o with Some x => x =? c | None => false end.
Definition fits_here (k : class2) (c : nat) : bool := is_some (fst k) c.
Definition fits_far (k : class2) (c : nat) : bool :=
  is_some (snd k) c || match assoc c b with Some (Some x) => is_some (fst k) x | _ => false end.
Definition computes (fit : class2 -> nat -> bool) (s : step op) (ks : list class2) (t : nat)
  : bool :=
  match knd T t with
  | Some (KOp o cs) =>
    op_eqb L o (so s) && is_nil (mdep T t) &&
    (all2 fit ks cs || (comm L o && (length ks =? 2) && all2 fit ks (rev cs)))
  | _ => false
  end.
Definition claim (fit : class2 -> nat -> bool) (s : step op) (ks : list class2) (t : option nat)
  : option (option nat) :=
  match t with
  | None => Some None
  | Some t => if computes fit s ks t then Some (Some (cls T t)) else None
  end.
Definition step_class (known : list class2) (s : step op) : option class2 :=
  let ks := map (opcls known) (sa s) in
  (* A path that binds nothing has one set of leaves. *)
  let far := match b with [] => None | _ => far s end in
  match claim fits_here s ks (here s), claim fits_far s ks far with
  | Some None, Some None => None
  | Some h, Some f =>
    Some (h, match f, h with
             | Some x, _ => Some x | None, Some x => unaffected x | None, None => None end)
  | _, _ => None
  end.
Fixpoint steps_class (l : list (step op)) (known : list class2) : option (list class2) :=
  match l with
  | [] => Some known
  | s :: r =>
    match step_class known s with Some k => steps_class r (known ++ [k]) | None => None end
  end.
Definition chk_assign (a : nat) (bq : binds) (known : list class2) (x : nat) (o : operand)
  : bool :=
  availb q x (fst (tgt E)) (snd (tgt E)) &&
  (let c := vcl q x in fits_far (opcls known o) c && AL (ag a) c && stays bq c).
End Checks.
Definition chk_target (a : nat) (aq : nat * nat) (csq : list crossing) (E : entry op) : bool :=
  posb (snd (pos K a)) aq &&
  match blk_at q (fst (tgt E)) with Some Bt => snd (tgt E) <=? bn Bt | None => false end &&
  forallb (fun x : crossing => only_from q (fst x) (into x) && negb (into x =? 0)) csq.
Definition chk_source (a : nat) (ap : nat * nat) : bool :=
  (a <? nids K) && reached K a && negb (stop a) && posb (fst (pos K a)) ap.
Definition chk_entry (E : entry op) : bool :=
  match from L T anch p (fst (src E)) (snd (src E)), from L T anch q (fst (tgt E)) (snd (tgt E))
    with
  | Some (csp, ap), Some (csq, aq) =>
    match aid p (fst ap) (snd ap) with
    | Some a =>
      chk_source a ap && chk_target a aq csq E &&
      (let bp := crosses_all p [] csp in let bq := crosses_all q [] csq in
       match steps_class E bp (steps E) [] with
       | Some known => each (chk_assign E bp a bq known) (assigns E)
       | None => false
       end)
    | None => false
    end
  | _, _ => false
  end.

(** ** The theorem *)
Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis pair_ok : chk_pair L T anch p q K = true.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
Let tok : chk_table L T = true := table_ok L T anch p q K pair_ok.

(** Classes say what an operand holds: over the leaves [s] at the source, and [e] at the anchor. *)
Definition means (s e : nat -> V) (k : class2) (x : V) :=
  (forall c, fst k = Some c -> x = D s c) /\ (forall c, snd k = Some c -> x = D e c).
Section Sound.
Variables (E : entry op) (b : binds) (s e : nat -> V) (env : nat -> V).
Hypothesis bound : bound_ok b s e.
Hypothesis typed_s : TL M T s.
Hypothesis typed_e : TL M T e.
Hypothesis contents : forall x, mem x (requires E) = true ->
  availb p x (fst (src E)) (snd (src E)) = true -> env x = D s (vcl p x).
Lemma stays_ok b' s' e' c : bound_ok b' s' e' -> stays b' c = true -> D e' c = D s' c.
Proof.
  intros Bo H. apply (resolve_ok L M T tok b' s' e' c c Bo). unfold resolve, stays in *.
  destruct b' as [|x b']; auto. destruct Bo as [Lf Bo].
  destruct (assoc c (x :: b')) as [r|] eqn:A; [|now rewrite H].
  pose proof (Lf _ _ A) as Lc. unfold Terms.AL in H. rewrite Lc in H. unfold unbound in H.
  rewrite A in H. discriminate.
Qed.
Lemma unaffected_ok c c' : unaffected b c = Some c' -> c' = c /\ D s c = D e c.
Proof.
  unfold unaffected. destruct (stays b c) eqn:U; [|discriminate]. intro Q. inversion Q; subst.
  split; auto. symmetry. eapply stays_ok; eauto.
Qed.
Lemma opcls_ok known rs : Forall2 (means s e) known rs ->
  forall o, means s e (opcls E b known o) (content env rs o).
Proof.
  intros Fk [x|n]; simpl.
  - destruct (availb p x (fst (src E)) (snd (src E)) && mem x (requires E)) eqn:A.
    + apply andb_true_iff in A. destruct A as [A Rq]. split; simpl; intros c Hc.
      * inversion Hc; subst. auto.
      * apply unaffected_ok in Hc. destruct Hc as [-> Q]. rewrite <- Q. auto.
    + split; simpl; intros; discriminate.
  - revert n. induction Fk as [|k x ks xs H Fk IH]; intros [|n]; simpl; auto;
      split; simpl; intros; discriminate.
Qed.
Lemma is_some_ok o c : is_some o c = true -> o = Some c.
Proof. destruct o; simpl; [intro H; apply Nat.eqb_eq in H; congruence|discriminate]. Qed.
Lemma fits_here_ok k x c : means s e k x -> fits_here k c = true -> x = D s c.
Proof. intros [H _] Q. apply H. now apply is_some_ok. Qed.
Lemma fits_far_ok k x c : means s e k x -> fits_far b k c = true -> x = D e c.
Proof.
  unfold fits_far. intros [H1 H2] Q. apply orb_true_iff in Q. destruct Q as [Q|Q].
  - apply H2. now apply is_some_ok.
  - destruct (assoc c b) as [[y|]|] eqn:A; try discriminate. apply is_some_ok in Q.
    destruct bound as [Lf Bo]. specialize (Bo c). rewrite A in Bo.
    rewrite (D_leaf M T) by eauto. rewrite Bo. auto.
Qed.
Lemma all2_ok fit m : (forall k x c, means s e k x -> fit k c = true -> x = D m c) ->
  forall ks xs, Forall2 (means s e) ks xs -> forall cs, all2 fit ks cs = true -> xs = map (D m) cs.
Proof.
  intros Fit ks xs Fk. induction Fk as [|k x ks xs H Fk IH]; intros [|c cs] A; simpl in *;
    try discriminate; auto.
  apply andb_true_iff in A. destruct A as [A1 A2]. f_equal; eauto.
Qed.
Lemma computes_ok fit m s' ks xs t : TL M T m -> (forall k x c, means s e k x -> fit k c = true ->
  x = D m c) ->
  Forall2 (means s e) ks xs -> computes fit s' ks t = true -> opsem M (so s') xs = D m (cls T t).
Proof.
  intros Tm Fit Fk Cm. unfold computes in Cm.
  destruct (knd T t) as [[n0| |i n0|o cs]|] eqn:Kt; try discriminate.
  apply andb_true_iff in Cm. destruct Cm as [O Cm]. apply andb_true_iff in O. destruct O as [O Md].
  apply (op_eqb_ok _ _ F) in O. subst o. apply is_nil_ok in Md.
  rewrite <- (class_sound L M T F rules tok _ Tm) by (intros u; rewrite Md; intros []).
  rewrite (D_op L M T tok _ _ _ _ Kt).
  apply orb_true_iff in Cm. destruct Cm as [Cm|Cm].
  - f_equal. eapply all2_ok; eauto.
  - apply andb_true_iff in Cm. destruct Cm as [Cm A]. apply andb_true_iff in Cm.
    destruct Cm as [Cm Ln]. apply Nat.eqb_eq in Ln.
    rewrite (all2_ok fit m Fit _ _ Fk _ A). apply all2_len in A. rewrite rev_length in A.
    destruct cs as [|c1 [|c2 [|]]]; simpl in *; try lia. now apply (comm_ok _ _ F).
Qed.
Lemma step_ok known rs s' k : Forall2 (means s e) known rs -> step_class E b known s' = Some k ->
  means s e k (opsem M (so s') (map (content env rs) (sa s'))).
Proof.
  intros Fk H. unfold step_class in H. set (ks := map (opcls E b known) (sa s')) in *.
  assert (Fs: Forall2 (means s e) ks (map (content env rs) (sa s'))).
  { unfold ks. generalize (sa s'). induction l as [|o l IH]; simpl; constructor; auto.
    now apply opcls_ok. }
  set (fr := match b with [] => None | _ => far s' end) in *.
  destruct (claim fits_here s' ks (here s')) as [h|] eqn:Ch; [|discriminate].
  destruct (claim (fits_far b) s' ks fr) as [f|] eqn:Cf; [|destruct h; discriminate].
  assert (Q: k = (h, match f, h with
    | Some x, _ => Some x | None, Some x => unaffected b x | None, None => None end))
    by (destruct h, f; inversion H; auto). subst k; clear H.
  assert (Hh: forall c, h = Some c -> opsem M (so s') (map (content env rs) (sa s')) = D s c).
  { intros c Hc. unfold claim in Ch. destruct (here s') as [t|]; [|congruence].
    destruct (computes fits_here s' ks t) eqn:Q; [|discriminate].
    replace c with (cls T t) by congruence.
    eapply computes_ok; eauto. intros; eapply fits_here_ok; eauto. }
  assert (Hf: forall c, f = Some c -> opsem M (so s') (map (content env rs) (sa s')) = D e c).
  { intros c Hc. unfold claim in Cf. destruct fr as [t|]; [|congruence].
    destruct (computes (fits_far b) s' ks t) eqn:Q; [|discriminate].
    replace c with (cls T t) by congruence.
    eapply computes_ok; eauto. intros; eapply fits_far_ok; eauto. }
  split; simpl; intros c Hc; auto. destruct f as [x|]; [inversion Hc; subst; auto|].
  destruct h as [x|]; [|discriminate]. apply unaffected_ok in Hc. destruct Hc as [-> Q].
  rewrite <- Q. auto.
Qed.
Lemma steps_ok l : forall known rs k, Forall2 (means s e) known rs ->
  steps_class E b l known = Some k -> Forall2 (means s e) k (run_steps env l rs).
Proof.
  induction l as [|s' l IH]; simpl; intros known rs k Fk H.
  - inversion H; subst; auto.
  - destruct (step_class E b known s') as [c|] eqn:Sc; [|discriminate]. eapply IH; eauto.
    apply Forall2_app; auto. constructor; auto. eapply step_ok; eauto.
Qed.
End Sound.

(** Both versions are at the points of an entry, and come to one anchor from there. *)
Record Landed (E : entry op) (sp sq : st V W) (a : nat) (ap aq : nat * nat)
  (csp csq : list crossing) (ep eq : st V W) : Prop := {
  ld_p : from L T anch p (fst (src E)) (snd (src E)) = Some (csp, ap);
  ld_q : from L T anch q (fst (tgt E)) (snd (tgt E)) = Some (csq, aq);
  ld_id : aid p (fst ap) (snd ap) = Some a;
  ld_bp : bound_ok (crosses_all p [] csp) (ss sp) (ss ep);
  ld_bq : bound_ok (crosses_all q [] csq) (ss sq) (ss eq);
  ld_inv : Inv p ep;
  ld_agree : Agree (ag a) (ss ep) (ss eq)
}.
(** The theorem for a run of the target version that has a step before each state but the first. *)
Lemma entry_from (Rn : st V W -> Prop) (E : entry op) sp gp gq :
  (forall s, Rn s -> reach q (start q args w) s) ->
  (forall s, Rn s -> s = start q args w \/ exists s', Rn s' /\ step1 L M T anch stop q s' = Some s)
    ->
  chk_entry E = true -> reach p (start p args w) sp -> (sb sp, sk sp) = src E ->
  Gap L M T anch p q K args w gp gq -> nreach p gp sp -> (forall e, nreach q gq e -> Rn e) ->
  exists sq, Rn sq /\ (sb sq, sk sq) = tgt E /\ sw sq = sw sp /\
  str sq = str sp /\ (exists a ap aq csp csq ep eq, Landed E sp sq a ap aq csp csq ep eq) /\
  forall env, (forall x, mem x (requires E) = true -> env x = se sp x) ->
  forall x o, get x (assigns E) = Some o -> fire E env o = se sq x.
Proof.
  intros Sub Came CE Rc At G Ng Fw. unfold chk_entry, from in CE. rewrite <- At in CE.
    cbn [fst snd] in CE.
  destruct (path L T anch p max_crossings (sb sp) (sk sp)) as [[csp ap]|] eqn:Lp; [|discriminate].
  destruct (path L T anch q max_crossings (fst (tgt E)) (snd (tgt E))) as [[csq aq]|] eqn:Lq;
    [|discriminate].
  destruct (aid p (fst ap) (snd ap)) as [a|] eqn:Ap; [|discriminate].
  set (bp := crosses_all p [] csp) in *. set (bq := crosses_all q [] csq) in *.
  apply andb_true_iff in CE. destruct CE as [CE As]. apply andb_true_iff in CE.
  destruct CE as [Cs Ct]. unfold chk_target in Ct.
  apply andb_true_iff in Ct. destruct Ct as [Ct Only]. apply andb_true_iff in Ct.
  destruct Ct as [Pq Tl]. destruct (blk_at q (fst (tgt E))) as [Bt|] eqn:Et; [|discriminate].
  apply Nat.leb_le in Tl.
  destruct (steps_class E bp (steps E) []) as [known|] eqn:Sc; [|discriminate].
  pose proof (okp L T anch p q K pair_ok) as Okp. pose proof (okq L T anch p q K pair_ok) as Okq.
  assert (InvP: forall s, reach p (start p args w) s -> Inv p s) by (eapply invp; eauto).
  assert (InvQ: forall s, reach q (start q args w) s -> Inv q s) by (eapply invq; eauto).
  (* The source version goes on to the anchor. *)
  destruct (path_run L M T anch stop p F rules tok Okp _ sp [] (ss sp) csp ap (InvP _ Rc) Lp
    (bound_nil _ _ _)) as [ep [Np [Xp [Yp Zp]]]]. fold bp in Zp.
  (* There the target version is, too. *)
  destruct (gap_sync L M T anch p q K F rules pair_ok args w args_ok args_ty _ _ G)
    as [ep' [eq [a0 [Np' [Nq Sy]]]]].
  destruct Sy as [Rp Rq Pos Lt_a In_a Ew Etr Ag Eqs Anc Id].
  assert (ep' = ep).
  { assert (N: nreach p gp ep) by exact (nreach_trans _ _ _ _ _ _ _ _ _ Ng Np).
    assert (X: nreach p ep ep') by exact (nreach_on _ _ _ _ _ _ _ _ _ N Np' (proj1 Anc)).
    exact (nreach_anchor _ _ _ _ _ _ _ _ X Yp). }
  subst ep'.
  assert (a0 = a).
  { rewrite <- Xp in Ap. cbn [fst snd] in Ap. congruence. }
  subst a0. apply posb_ok in Pq. assert (Paq: (sb eq, sk eq) = aq) by (now rewrite Pos in Pq).
  (* And it came by the landing point. *)
  destruct (back_path L M T anch stop q F tok Okq Rn (start q args w) Came eq
    (fun x Hx => InvQ x (Sub x Hx)) (Fw _ Nq) eq_refl eq_refl
    max_crossings (fst (tgt E)) (snd (tgt E)) csq) as [sq [Rs [Sb [Sk Ns]]]]; auto.
  { rewrite Lq. congruence. }
  { intros B HB. rewrite Et in HB. inversion HB; subst. auto. }
  exists sq. split; auto. split; [destruct (tgt E); simpl in *; congruence|].
  destruct (nreach_same _ _ _ _ _ _ _ _ Np) as [Wp Tp].
  destruct (nreach_same _ _ _ _ _ _ _ _ Ns) as [Wq Tq].
  split; [congruence|]. split; [congruence|].
  (* The target version may bind leaves from there on. *)
  destruct (path_run L M T anch stop q F rules tok Okq max_crossings sq [] (ss sq)
    csq aq (InvQ _ (Sub _ Rs)))
    as [eq' [Nq' [Xq [Yq Zq]]]]; [now rewrite Sb, Sk|apply bound_nil|]. fold bq in Zq.
  assert (eq' = eq).
  { assert (X: nreach q eq' eq) by exact (nreach_on _ _ _ _ _ _ _ _ _ Nq' Ns (proj2 Anc)).
    symmetry. exact (nreach_anchor _ _ _ _ _ _ _ _ X Yq). }
  subst eq'. split.
  { exists a, ap, aq, csp, csq, ep, eq. constructor; auto. now rewrite <- At. }
  intros env Henv x o Hx. apply (each_ok _ _ _ _ As) in Hx. unfold chk_assign in Hx.
  apply andb_true_iff in Hx. destruct Hx as [Av Hx]. apply andb_true_iff in Hx.
  destruct Hx as [Hx Ub]. apply andb_true_iff in Hx. destruct Hx as [Ff Al].
  assert (Vq: se sq x = D (ss sq) (vcl q x)).
  { apply (inv_right _ _ _ _ _ (InvQ _ (Sub _ Rs))). now rewrite Sb, Sk. }
  rewrite Vq, <- (stays_ok _ _ _ _ Zq Ub).
  rewrite <- (agree_D L M T anch p q K pair_ok (ag a) (ss ep) (ss eq) _ Ag Al).
  assert (Cont: forall u, mem u (requires E) = true ->
    availb p u (fst (src E)) (snd (src E)) = true -> env u = D (ss sp) (vcl p u)).
  { intros u Hu Au. rewrite Henv by auto. apply (inv_right _ _ _ _ _ (InvP _ Rc)).
    rewrite <- At in Au. exact Au. }
  eapply (fits_far_ok bp (ss sp) (ss ep) Zp); [|exact Ff].
  pose proof (inv_typed _ _ _ _ _ (InvP _ Rc)) as Ts. pose proof (inv_typed _ _ _ _ _ (InvP _ Rp))
    as Te.
  apply opcls_ok; auto. unfold fire. eapply steps_ok; eauto.
Qed.

(** Suppose that the source version comes to the source point. Then the target version, started on
    the same input, comes to the landing point, in the same world and after the same effects. Firing
    the entry reads the required values alone, and gives every value provided the contents that it
    has there. Memory is one of the values provided. *)
Theorem entry_right (E : entry op) sp : chk_entry E = true ->
  reach p (start p args w) sp -> (sb sp, sk sp) = src E ->
  exists sq, reach q (start q args w) sq /\ (sb sq, sk sq) = tgt E /\ sw sq = sw sp /\
  str sq = str sp /\
  forall env, (forall x, mem x (requires E) = true -> env x = se sp x) ->
  forall x o, get x (assigns E) = Some o -> fire E env o = se sq x.
Proof.
  intros CE Rc At.
  destruct (lockstep L M T anch p q K F rules pair_ok args w args_ok args_ty sp Rc)
    as [gp [gq [G Ng]]].
  destruct (entry_from (reach q (start q args w)) E sp gp gq)
    as [sq Right]; auto.
  - apply reach_came.
  - intros e Ne. eapply nreach_reach; eauto. exact (ga_q _ _ _ _ _ _ _ _ _ _ _ G).
  - exists sq. tauto.
Qed.
End Entry.
