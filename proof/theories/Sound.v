(** Why every available value holds what its class stands for.

    The invariant of a run: a leaf was never bound and nothing available depends on it, or nothing
    that is available where it is bound depends on it. Every step keeps it. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version.

Section Sound.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable anch : nat -> bool.
Variable stop : nat -> bool.
Variable v : version op.

Notation D := (D M T).
Notation cls := (cls T).
Notation knd := (knd T).
Notation leaf := (leaf T).
Notation indep := (indep M T).
Notation TL := (TL M T).
Notation tty := (tty T).
Notation AL := (AL T).
Notation vcl := (Version.vcl T v).
Notation blk_at := (Version.blk_at v).
Notation isparam := (Version.isparam T).
Notation leafb := (Version.leafb T v).
Notation bindl := (Version.bindl T v).
Notation bindr := (Version.bindr v).
Notation pad := (Version.pad L M).
Notation taken := (Version.taken M).
Notation enter := (Version.enter T v).
Notation step1 := (Version.step1 L M T anch stop v).
Notation params0 := (Version.params0 v).
Notation arity := (Version.arity v).
Notation start := (Version.start M T v).
Notation args_typed := (Version.args_typed M T).
Notation reach := (Version.reach L M T anch stop v).
Notation isdef := (Version.isdef v).
Notation availb := (Version.availb v).
Notation live_edges := (Version.live_edges L T v).
Notation chk_param := (Version.chk_param T v).
Notation merged_at := (Version.merged_at L T).
Notation is_block := (Version.is_block v).
Notation is_here := (Version.is_here L T v).
Notation is_above := (Version.is_above T v).
Notation chk_merged := (Version.chk_merged L T v).
Notation chk_merge := (Version.chk_merge L T v).
Notation is_held := (Version.is_held T v).
Notation chk_rest := (Version.chk_rest L T v).
Notation chk_edge := (Version.chk_edge L T v).
Notation loc_is := (Version.loc_is v).
Notation chk_args := (Version.chk_args L T v).
Notation chk_inst := (Version.chk_inst L T anch v).
Notation chk_last := (Version.chk_last L T v).
Notation chk_block := (Version.chk_block L T anch v).
Notation chk_first := (Version.chk_first T v).
Notation chk_version := (Version.chk_version L T anch v).

(** ** The invariant *)
(** The operation without effect that defines a value, and its operands. *)
Definition site_of (x : nat) : option (op * list nat) :=
  match snd (dl v x), blk_at (fst (dl v x)) with
  | S k, Some B =>
    match inst_at B k with Some (IPure _ _ o a) => Some (o, a) | _ => None end
  | _, _ => None
  end.
(** Neither a value nor the operands that it was computed from depend on a leaf. *)
Definition aside (x l : nat) : Prop := indep (vcl x) l /\
  forall o a, site_of x = Some (o, a) -> forall y, In y a -> indep (vcl y) l.
Definition free (l b k : nat) := forall x, availb x b k = true -> aside x l.
Definition bindsb (B x : nat) : bool := isdef x B 0 && leafb B x.
Definition indep_home (l : nat) :=
  forall x, availb x (home v l) 0 = true -> bindsb (home v l) x = false -> aside x l.
Definition indep_eff (i l : nat) :=
  forall x, availb x (fst (eloc v i)) (snd (eloc v i)) = true -> aside x l.
(** A leaf was never bound, and nothing available depends on it; or nothing that is available
    where it is bound depends on it. *)
Definition once (b k l : nat) : Prop :=
  match knd l with
  | Some KParam => free l b k \/ indep_home l
  | Some (KRes i _) => free l b k \/ indep_eff i l
  | _ => True
  end.
Definition right (s : st V W) :=
  forall x, availb x (sb s) (sk s) = true -> se s x = D (ss s) (vcl x).
(** A merged read has its class wherever its block dominates. *)
Definition merges (s : nat -> V) (b : nat) : Prop :=
  forall m, is_here b m = true -> D s m = D s (cls m).
Record Inv (s : st V W) : Prop := {
  inv_typed : TL (ss s);
  inv_merged : merges (ss s) (sb s);
  inv_live : lv v (sb s) = true;
  inv_at : exists B, blk_at (sb s) = Some B /\ sk s <= bn B;
  inv_right : right s;
  inv_once : forall l, once (sb s) (sk s) l
}.

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis table_ok : chk_table L T = true.
Hypothesis version_ok : chk_version = true.

Lemma loc_is_ok x b p : loc_is x b p = true -> dl v x = (b, p).
Proof. unfold Version.loc_is. intro H. bools. destruct (dl v x); simpl in *; congruence. Qed.
Lemma block_ok b B : lv v b = true -> blk_at b = Some B ->
  (forall x, In x (ps B) -> dl v x = (b, 0)) /\ NoDup (ps B) /\
  (forall k i, inst_at B k = Some i -> chk_inst b k i = true) /\ chk_last b (bn B) (lt B) = true.
Proof.
  intros Lb E. pose proof version_ok as VO. unfold Version.chk_version in VO.
  apply andb_true_iff in VO. destruct VO as [VO _]. apply andb_true_iff in VO.
    destruct VO as [_ VO].
  pose proof (below_ok _ _ VO _ (blk_lt _ _ _ E)) as I. unfold Version.chk_block in I.
  rewrite Lb, E in I. simpl in I. bools. split; [|split; [|split]]; auto.
  - intros x Hx. rewrite forallb_forall in H. apply loc_is_ok. auto.
  - now apply nodupb_ok.
  - intros k i Hk.
    match goal with Z : below (bn B) _ = true |- _ => rename Z into Bl end.
    pose proof (below_ok _ _ Bl _ (inst_some _ _ _ Hk)) as Q. simpl in Q.
    now rewrite Hk in Q.
Qed.
Lemma avail_def x b k : availb x b k = true ->
  exists d p, dl v x = (d, p) /\ isdef x d p = true /\ In d (doms v b) /\ (d = b -> p <= k).
Proof.
  unfold Version.availb. destruct (dl v x) as [d p]. intro H. bools. exists d, p. split; auto.
    split; auto.
  split; [now apply inb_In|]. intro Q. subst. rewrite Nat.eqb_refl in H0. simpl in H0.
  now apply Nat.leb_le in H0.
Qed.
Lemma def_avail x d p b k : dl v x = (d, p) -> isdef x d p = true -> In d (doms v b) ->
  (d = b -> p <= k) -> availb x b k = true.
Proof.
  intros E A B H. unfold Version.availb. rewrite E, A. apply inb_In in B. rewrite B. simpl.
  destruct (d =? b) eqn:Q; auto. apply Nat.eqb_eq in Q. simpl. now apply Nat.leb_le, H.
Qed.
(** A value that is available behind an instruction was available before it, or is its result. *)
Lemma avail_back x b k B i : lv v b = true -> blk_at b = Some B -> inst_at B k = Some i ->
  availb x b (S k) = true -> In x (defs i) \/ (~ In x (defs i) /\ availb x b k = true).
Proof.
  intros Lb E K A. destruct (avail_def _ _ _ A) as [d [p [X [Y [Z H]]]]].
  destruct (in_dec Nat.eq_dec x (defs i)) as [I|N]; auto. right. split; auto.
  eapply def_avail; eauto. intro Q. subst d. specialize (H eq_refl). assert (p <> S k).
  { intro; subst p. unfold Version.isdef in Y. rewrite E, K in Y. apply inb_In in Y. contradiction.
    }
  lia.
Qed.
Lemma defs_at x b k B i : lv v b = true -> blk_at b = Some B -> inst_at B k = Some i ->
  In x (defs i) -> dl v x = (b, S k).
Proof.
  intros Lb E K I. destruct (block_ok _ _ Lb E) as [_ [_ [H _]]]. specialize (H _ _ K).
  unfold Version.chk_inst in H. destruct i as [i x' o a|i o a r]; simpl in *; bools.
  - destruct I as [->|[]]. now apply loc_is_ok.
  - rewrite forallb_forall in H4. apply loc_is_ok. auto.
Qed.
Lemma edge_ok P len e : chk_edge P len e = true ->
  exists B', blk_at (dst e) = Some B' /\ lv v (dst e) = true /\ dst e <> 0 /\
  length (ea e) = length (ps B') /\ (forall a, In a (ea e) -> availb a P len = true) /\
  (forall h, In h (doms v (dst e)) -> h <> dst e -> In h (doms v P)) /\
  (forall x a, In (x, a) (combine (ps B') (ea e)) ->
    chk_param (dst e) (combine (ps B') (ea e)) (x, a) = true) /\
  (forall m, In m (mreads v (dst e)) -> chk_merge P (combine (ps B') (ea e)) (dst e) m = true).
Proof.
  unfold Version.chk_edge. intro H. apply andb_true_iff in H. destruct H as [_ H]. revert H.
  destruct (blk_at (dst e)) as [B'|]; [|rewrite andb_false_r; discriminate].
  intro H. apply andb_true_iff in H. destruct H as [H1 H]. apply andb_true_iff in H1.
  destruct H1 as [Lv N0]. apply andb_true_iff in H. destruct H as [H Q]. apply andb_true_iff in Q.
  destruct Q as [Qp Qm]. apply andb_true_iff in H. destruct H as [H Dm]. apply andb_true_iff in H.
  destruct H as [Ln Av]. exists B'. split; auto. split; auto. split.
  { intro Q. rewrite Q in N0. discriminate. }
  rewrite forallb_forall in Av, Qp, Qm. split; [now apply Nat.eqb_eq|]. split; auto. split;
    [|split].
  - intros h Hh N'. destruct (doms v (dst e)) as [|h0 r]; [contradiction|]. bools. subst h0.
    destruct Hh as [Q|Hh]; [congruence|]. eapply sub_ok; eauto.
  - intros x a I. exact (Qp _ I).
  - exact Qm.
Qed.
(** A value that is available at the start of a block, and is no parameter of it, was available at
    the end of every block before it. *)
Lemma avail_up x P BP e B' : blk_at P = Some BP -> chk_edge P (bn BP) e = true ->
  blk_at (dst e) = Some B' -> availb x (dst e) 0 = true -> ~ In x (ps B') ->
  availb x P (bn BP) = true.
Proof.
  intros EP CE EB A NI. destruct (edge_ok _ _ _ CE) as [B2 [E2 [L2 [N [_ [_ [Tr [_ _]]]]]]]].
  rewrite EB in E2. inversion E2; subst B2. destruct (avail_def _ _ _ A) as [d [p [X [Y [Z H]]]]].
  destruct (Nat.eq_dec d (dst e)) as [Q|Q].
  - subst d. specialize (H eq_refl). assert (p = 0) by lia. subst p. unfold Version.isdef in Y.
    rewrite EB in Y. apply inb_In in Y. contradiction.
  - eapply def_avail; eauto. intro. subst d. unfold Version.isdef in Y. rewrite EP in Y.
    destruct p as [|p]; [lia|]. destruct (inst_at BP p) eqn:G; [|discriminate].
    apply inst_some in G. lia.
Qed.

Lemma bindl_find B t (s : nat -> V) : forall l, bindl B l s t =
  match find (fun y => leafb B (fst y) && (tm v (fst y) =? t)) l with
  | Some (_, a) => a | None => s t end.
Proof.
  induction l as [|[x a] r IH]; simpl; auto. destruct (leafb B x) eqn:Lx; simpl; auto.
  destruct (tm v x =? t) eqn:Q.
  - apply Nat.eqb_eq in Q. subst. apply upd_same.
  - rewrite <- IH. apply upd_other. intro; subst. now rewrite Nat.eqb_refl in Q.
Qed.
Definition fits_leaves (l : list (nat * V)) (B : nat) : Prop :=
  forall x a, In (x, a) l -> leafb B x = true -> typed M (tty (tm v x)) a.
Lemma bindl_typed B s l : TL s -> fits_leaves l B -> TL (bindl B l s).
Proof.
  intros Ts H. induction l as [|[x a] r IH]; simpl; auto.
  assert (Ts': TL (bindl B r s)) by (apply IH; intros y c I; apply H; now right).
  destruct (leafb B x) eqn:Lx; auto. apply TL_upd; auto. apply (H x a); [now left|auto].
Qed.
Lemma bindl_indep B c s : TL s -> forall l, fits_leaves l B ->
  (forall x a, In (x, a) l -> leafb B x = true -> indep c (tm v x)) -> D (bindl B l s) c = D s c.
Proof.
  intros Ts. induction l as [|[x a] r IH]; simpl; intros Tl H; auto.
  assert (Tr: fits_leaves r B) by (intros y b I; apply Tl; now right).
  assert (Hr: D (bindl B r s) c = D s c) by (apply IH; auto; intros; eapply H; eauto; now right).
  destruct (leafb B x) eqn:Lx; auto. rewrite (H x a (or_introl eq_refl) Lx); auto.
  - now apply bindl_typed.
  - apply (Tl x a); [now left|auto].
Qed.
Lemma bindr_find t (s : nat -> V) : forall l, bindr l s t =
  match find (fun y => tm v (fst y) =? t) l with Some (_, a) => a | None => s t end.
Proof.
  induction l as [|[x a] r IH]; simpl; auto. destruct (tm v x =? t) eqn:Q.
  - apply Nat.eqb_eq in Q. subst. apply upd_same.
  - rewrite <- IH. apply upd_other. intro; subst. now rewrite Nat.eqb_refl in Q.
Qed.
Definition fits_results (l : list (nat * V)) : Prop :=
  forall x a, In (x, a) l -> typed M (tty (tm v x)) a.
Lemma bindr_typed s l : TL s -> fits_results l -> TL (bindr l s).
Proof.
  intros Ts H. induction l as [|[x a] r IH]; simpl; auto. apply TL_upd.
  - apply IH. intros y c I. apply H. now right.
  - apply (H x a). now left.
Qed.
Lemma bindr_indep c s : TL s -> forall l, fits_results l ->
  (forall x a, In (x, a) l -> indep c (tm v x)) -> D (bindr l s) c = D s c.
Proof.
  intros Ts. induction l as [|[x a] r IH]; simpl; intros Tl H; auto.
  assert (Tr: fits_results r) by (intros y b I; apply Tl; now right).
  rewrite (H x a (or_introl eq_refl)).
  - apply IH; auto. intros; eapply H; eauto.
  - now apply bindr_typed.
  - apply (Tl x a). now left.
Qed.
Lemma leafb_param B x : leafb B x = true ->
  knd (tm v x) = Some KParam /\ home v (tm v x) = B /\ leaf (tm v x) = true /\ vcl x = tm v x.
Proof.
  unfold Version.leafb, Version.isparam. intro H. bools.
  destruct (knd (tm v x)) as [[n0| |i n0|o a]|] eqn:E; try discriminate.
  assert (Lf: leaf (tm v x) = true) by (unfold Terms.leaf; now rewrite E).
  repeat split; auto. unfold Version.vcl. eapply cls_leaf; eauto.
Qed.
(** *** Merged reads *)
Lemma merged_rest b k t s : chk_rest b k t = true -> merges s b -> merged_ok M T s t.
Proof.
  intros H Mg m Hm. unfold Version.chk_rest in H. destruct (mdep T t) as [|m0 ms] eqn:E;
    [contradiction|].
  apply andb_true_iff in H. destruct H as [H _]. rewrite forallb_forall in H. auto.
Qed.
Lemma chk_merged_all m : chk_merged m = true.
Proof.
  unfold Version.chk_version in version_ok. apply andb_true_iff in version_ok.
    destruct version_ok as [_ Mg].
  destruct (at_ T m) as [e|] eqn:E.
  - apply (below_ok _ _ Mg). eapply at_lt; eauto.
  - unfold Version.chk_merged, Version.merged_at. now rewrite E.
Qed.
(** Where no leaf that a class names changes but those that the block binds, merged reads stay. *)
Lemma merges_stay s s' b m : merges s b -> is_here b m = true ->
  (forall a found, merged_at m = Some (a, found) -> s' (am a) = s (am a) /\
    forall l, is_above (home v (am a)) l = true -> s' l = s l) ->
  D s' m = D s' (cls m).
Proof.
  intros Mg H Ch. pose proof (chk_merged_all m) as Cm. pose proof (Mg _ H) as E.
    unfold Version.is_here in H. unfold Version.chk_merged in Cm.
  destruct (merged_at m) as [[a found]|] eqn:Ma; [|discriminate].
  destruct (Ch _ _ eq_refl) as [Cl Co]. apply andb_true_iff in H. destruct H as [H Lb].
  rewrite Lb in Cm. simpl in Cm. apply andb_true_iff in Cm.
  destruct Cm as [Cm Cc]. apply andb_true_iff in Cm. destruct Cm as [_ Cx].
  unfold Version.merged_at in Ma. destruct (at_ T m) as [e|]; [|discriminate].
  destruct (tb e); try discriminate. destruct (read_at L T m) as [a'|] eqn:Ra; [|discriminate].
  destruct (isparam (am a')) eqn:Ip; [|discriminate]. inversion Ma; subst; clear Ma.
  pose proof (shapes L T table_ok) as Sh.
  destruct (access_ok L M T Sh s' (reads L) m a Ra) as [_ D'].
  destruct (access_ok L M T Sh s (reads L) m a Ra) as [_ D0].
  assert (Lf: leaf (am a) = true)
    by (unfold Version.isparam in Ip; unfold Terms.leaf; destruct (knd (am a)) as [[]|]; auto).
  rewrite (AL_agree L M T table_ok _ s' s _ Cc Co), <- E, D', D0. f_equal. f_equal.
  - apply map_ext_in. intros x Hx. rewrite forallb_forall in Cx.
    exact (AL_agree L M T table_ok _ s' s _ (Cx _ Hx) Co).
  - f_equal. rewrite !(D_leaf M T) by auto. exact Cl.
Qed.

(** The operands of an instruction decide its result. *)
Lemma op_value b k i x o a (s : st V W) : chk_inst b k (IPure i x o a) = true ->
  TL (ss s) -> merges (ss s) b ->
  (forall y, availb y b k = true -> se s y = D (ss s) (vcl y)) ->
  opsem M o (map (se s) a) = D (ss s) (vcl x).
Proof.
  intros H Ts Mg Rt. unfold Version.chk_inst in H. apply andb_true_iff in H. destruct H as [H Rest].
  apply andb_true_iff in H. destruct H as [H H0]. apply andb_true_iff in H. destruct H as [H _].
  destruct (knd (tm v x)) as [[n0| |i0 n0|o' cs]|] eqn:K; try discriminate.
  apply andb_true_iff in H0. destruct H0 as [H0 H2].
  apply (op_eqb_ok _ _ F) in H0. subst o'. unfold Version.vcl.
  rewrite <- (class_sound L M T F rules table_ok _ Ts) by (eapply merged_rest; eauto).
  rewrite (D_op L M T table_ok _ _ _ _ K).
  rewrite forallb_forall in H. assert (Mp: map (se s) a = map (D (ss s)) (map vcl a)).
  { rewrite map_map. apply map_ext_in. intros y Hy. auto. }
  rewrite Mp. unfold Version.chk_args in H2. apply orb_true_iff in H2. destruct H2 as [X|X].
  - apply nats_eqb_ok in X. now rewrite X.
  - bools. match goal with Q : nats_eqb cs _ = true |- _ => apply nats_eqb_ok in Q; rewrite Q end.
    destruct a as [|a1 [|a2 [|]]]; try discriminate. simpl. now apply (comm_ok _ _ F).
Qed.
Lemma op_indep b k i x o a l : chk_inst b k (IPure i x o a) = true -> free l b k ->
  (exists j n, knd l = Some (KRes j n)) \/ knd l = Some KParam -> indep (vcl x) l.
Proof.
  intros H Fr Kl. unfold Version.chk_inst in H. apply andb_true_iff in H. destruct H as [H Rest].
  apply andb_true_iff in H. destruct H as [H H0]. apply andb_true_iff in H. destruct H as [H _].
  destruct (knd (tm v x)) as [[n0| |i0 n0|o' cs]|] eqn:K; try discriminate.
  apply andb_true_iff in H0. destruct H0 as [_ H2].
  assert (Ll: leaf l = true) by (unfold Terms.leaf; destruct Kl as [[j [n Q]]|Q]; now rewrite Q).
  unfold Version.chk_rest in Rest. destruct (mdep T (tm v x)) as [|m0 ms] eqn:Md.
  - unfold Version.vcl. apply (indep_cls L M T F rules table_ok); auto.
    eapply (indep_op L M T table_ok); eauto. rewrite forallb_forall in H.
    assert (Mp: forall c, In c (map vcl a) -> indep c l).
    { intros c Hc. apply in_map_iff in Hc. destruct Hc as [y [<- Hy]].
      apply Fr. auto. }
    intros c Hc. apply Mp. unfold Version.chk_args in H2. apply orb_true_iff in H2.
      destruct H2 as [X|X].
    + apply nats_eqb_ok in X. now rewrite <- X.
    + bools. match goal with Q : nats_eqb cs _ = true |- _ => apply nats_eqb_ok in Q; rewrite Q in
      Hc end.
      now apply in_rev.
  - apply andb_true_iff in Rest. destruct Rest as [_ Held]. fold (vcl x) in Held.
    rewrite forallb_forall in Held. apply (indep_deps L M T table_ok); auto.
    destruct (in_dec Nat.eq_dec l (if leaf (vcl x) then [vcl x] else deps T (vcl x))) as [I|N].
    + left. intros m ->. apply Held in I. unfold Version.is_held in I.
      assert (G: availb (holder v l) b k && (tm v (holder v l) =? l) = true)
        by (destruct Kl as [[j [n Q]]|Q]; now rewrite Q in I).
      apply andb_true_iff in G. destruct G as [Av Tm]. apply Nat.eqb_eq in Tm.
      apply Fr in Av. destruct Av as [Av _]. clear Fr. rename Av into Fr. unfold Version.vcl in Fr.
        rewrite Tm in Fr.
      now rewrite (cls_leaf L T table_ok _ Ll) in Fr.
    + right. unfold Terms.AL. destruct (leaf (vcl x)) eqn:Lx.
      * apply negb_true_iff, Nat.eqb_neq. intro; subst. apply N. now left.
      * apply forallb_forall. intros y Hy. apply negb_true_iff, Nat.eqb_neq. intro; subst.
        contradiction.
Qed.

Lemma site_here x b k B i o a : dl v x = (b, S k) -> blk_at b = Some B ->
  inst_at B k = Some (IPure i x o a) -> site_of x = Some (o, a).
Proof. intros Dl E K. unfold site_of. rewrite Dl. simpl. now rewrite E, K. Qed.
Lemma site_none x b k B : dl v x = (b, S k) -> blk_at b = Some B ->
  match inst_at B k with Some (IPure _ _ _ _) => False | _ => True end -> site_of x = None.
Proof.
  intros Dl E K. unfold site_of. rewrite Dl. simpl. rewrite E.
  destruct (inst_at B k) as [[]|]; auto. contradiction.
Qed.
Lemma site_param x b : dl v x = (b, 0) -> site_of x = None.
Proof. intro Dl. unfold site_of. now rewrite Dl. Qed.

(** *** Every step keeps the invariant *)
Lemma inv_pure s B i x o a : Inv s -> blk_at (sb s) = Some B ->
  inst_at B (sk s) = Some (IPure i x o a) ->
  Inv (St (sb s) (S (sk s)) (upd (se s) x (opsem M o (map (se s) a))) (sw s) (str s) (ss s)).
Proof.
  intros [Ts Mg Lb [B0 [E0 K0]] Rt O] E K. destruct (block_ok _ _ Lb E) as [_ [_ [BI _]]].
  pose proof (BI _ _ K) as H. constructor; simpl; auto.
  - exists B. split; auto. now apply inst_some in K.
  - intros y A. simpl in *. destruct (avail_back _ _ _ _ _ Lb E K A) as [I|[N A']].
    + simpl in I. destruct I as [<-|[]]. rewrite upd_same. exact (op_value _ _ i _ _ _ s H Ts Mg
      Rt).
    + rewrite upd_other; auto. simpl in N. intro; subst; tauto.
  - assert (Fr: forall l, (exists j n, knd l = Some (KRes j n)) \/ knd l = Some KParam ->
      free l (sb s) (sk s) -> free l (sb s) (S (sk s))).
    { intros l Kl Fr y A. destruct (avail_back _ _ _ _ _ Lb E K A) as [I|[_ A']]; [|now apply Fr].
      simpl in I. destruct I as [<-|[]]. split; [exact (op_indep _ _ i _ _ _ _ H Fr Kl)|].
      intros o' a' Si z Hz.
      rewrite (site_here _ _ _ _ _ _ _ (defs_at _ _ _ _ _ Lb E K (or_introl eq_refl)) E K) in Si.
      inversion Si; subst o' a'. apply Fr. unfold Version.chk_inst in H.
      apply andb_true_iff in H. destruct H as [H _]. apply andb_true_iff in H. destruct H as [H _].
      apply andb_true_iff in H. destruct H as [H _]. rewrite forallb_forall in H. auto. }
    intro l. specialize (O l). unfold once in *.
    destruct (knd l) as [[n0| |j n0|o' cs]|] eqn:Kl; auto; destruct O; eauto 6.
Qed.
Lemma res_kind b k i o a r x n : chk_inst b k (IEff i o a r) = true -> nth_error r n = Some x ->
  knd (tm v x) = Some (KRes i n) /\ tty (tm v x) = ety L o n.
Proof.
  intros H Hx. simpl in H. apply andb_true_iff in H. destruct H as [_ H].
  pose proof (indexed_ok _ _ _ H _ _ Hx) as G. simpl in G.
  destruct (knd (tm v x)) as [[n0| |j m|o' cs]|]; try discriminate. bools. split; congruence.
Qed.
Lemma nth_pad o n (x : nat) (rs : list V) (r : list nat) : nth_error r n = Some x ->
  nth_error (pad o (length r) rs) n = Some (nth n rs (dflt M (ety L o n))).
Proof.
  intro H. unfold Version.pad. assert (Lr: n < length r) by (apply nth_error_Some; congruence).
  rewrite nth_error_map. rewrite nth_error_nth' with (d := 0) by (rewrite seq_length; auto).
  simpl. now rewrite seq_nth.
Qed.
Lemma in_results (r : list nat) o rs (x : nat) c : In (x, c) (combine r (pad o (length r) rs)) ->
  exists n, nth_error r n = Some x /\ c = nth n rs (dflt M (ety L o n)).
Proof.
  intro I. apply In_nth_error in I. destruct I as [n Hn]. exists n.
  assert (Hr: nth_error r n = Some x).
  { clear -Hn. revert Hn. generalize (pad o (length r) rs). revert n.
    induction r as [|y r IH]; intros [|n] [|c' l] H; simpl in *; try discriminate.
    - inversion H; auto.
    - eauto. }
  split; auto. pose proof (nth_error_combine _ _ _ _ _ Hr (nth_pad o _ _ rs _ Hr)). congruence.
Qed.
Lemma inv_eff s B i o a r w' rs : Inv s -> blk_at (sb s) = Some B ->
  inst_at B (sk s) = Some (IEff i o a r) -> effsem M o (map (se s) a) (sw s) = (w', rs) ->
  let l := combine r (pad o (length r) rs) in
  Inv (St (sb s) (S (sk s)) (assign l (se s)) w' (str s ++ [i]) (bindr l (ss s))).
Proof.
  intros [Ts Mg Lb [B0 [E0 K0]] Rt O] E K Es l. destruct (block_ok _ _ Lb E) as [_ [_ [BI _]]].
  pose proof (BI _ _ K) as H.
  assert (Kr: forall n x, nth_error r n = Some x ->
    knd (tm v x) = Some (KRes i n) /\ tty (tm v x) = ety L o n)
    by (intros; eapply (res_kind (sb s) (sk s) i o a r); eauto).
  simpl in H. bools.
  assert (EL: eloc v i = (sb s, sk s)) by (destruct (eloc v i); simpl in *; congruence).
  assert (ND: NoDup r) by now apply nodupb_ok.
  assert (Fits: fits_results l).
  { intros x c I. destruct (in_results _ _ _ _ _ I) as [n [Hn ->]]. destruct (Kr _ _ Hn) as [_ ->].
    replace rs with (snd (effsem M o (map (se s) a) (sw s))) by (now rewrite Es).
    apply (eff_typed _ _ F). apply (dflt_typed _ _ F). }
  assert (Leafs: forall x c, In (x, c) l -> exists n, knd (tm v x) = Some (KRes i n)).
  { intros x c I. destruct (in_results _ _ _ _ _ I) as [n [Hn _]]. destruct (Kr _ _ Hn). eauto. }
  (* Nothing that is available before the effect depends on its results. *)
  assert (FR: forall t n, knd t = Some (KRes i n) -> free t (sb s) (sk s)).
  { intros t n It. specialize (O t). unfold once in *. rewrite It in O.
    destruct O as [Fr|G]; auto. intros x A. apply G. now rewrite EL. }
  assert (Same: forall y, availb y (sb s) (sk s) = true -> D (bindr l (ss s)) (vcl y) = D (ss s)
    (vcl y)).
  { intros y A. apply bindr_indep; auto. intros x c I. destruct (Leafs _ _ I) as [n Kx].
    exact (proj1 (FR _ _ Kx y A)). }
  constructor; simpl; auto.
  - now apply bindr_typed.
  - intros m Hm. eapply merges_stay; eauto. intros m' found Ma. split.
    + rewrite bindr_find. destruct (find _ l) as [[x c]|] eqn:Fd; auto. exfalso.
      apply find_some in Fd. destruct Fd as [I Q]. simpl in Q. apply Nat.eqb_eq in Q.
      destruct (Leafs _ _ I) as [n Kx]. unfold Version.merged_at in Ma. destruct (at_ T m) as [e|];
        [|discriminate].
      destruct (tb e); try discriminate. destruct (read_at L T m) as [a'|]; [|discriminate].
      unfold Version.isparam in Ma. destruct (knd (am a')) as [[]|] eqn:Ka; try discriminate.
      inversion Ma; subst. congruence.
    + intros y Hy. rewrite bindr_find. destruct (find _ l) as [[x c]|] eqn:Fd; auto. exfalso.
      apply find_some in Fd. destruct Fd as [I Q]. simpl in Q. apply Nat.eqb_eq in Q. subst y.
      destruct (Leafs _ _ I) as [n Kx]. unfold Version.is_above in Hy. rewrite Kx, EL in Hy.
        simpl in Hy.
      unfold Version.is_here in Hm. rewrite Ma in Hm. apply andb_true_iff in Hm.
        destruct Hm as [Hm _].
      rewrite Hm in Hy. discriminate.
  - exists B. split; auto. now apply inst_some in K.
  - intros x A. simpl in *. unfold assign.
    destruct (avail_back _ _ _ _ _ Lb E K A) as [I|[N A']].
    + simpl in I. apply In_nth_error in I. destruct I as [n Hn].
      destruct (Kr _ _ Hn) as [Kx _]. pose proof (nth_pad o _ _ rs _ Hn) as Np.
      assert (I2: In (x, nth n rs (dflt M (ety L o n))) l) by (eapply in_combine_nth; eauto).
      unfold l at 1. rewrite (find_nodup _ _ _ _ ND I2). unfold Version.vcl.
      assert (Lf: leaf (tm v x) = true) by (unfold Terms.leaf; now rewrite Kx).
      rewrite (cls_leaf L T table_ok _ Lf), (D_leaf M T _ _ Lf), bindr_find.
      destruct (find (fun y => tm v (fst y) =? tm v x) l) as [[y c]|] eqn:Fd.
      * apply find_some in Fd. destruct Fd as [Iy Q]. simpl in Q. apply Nat.eqb_eq in Q.
        destruct (in_results _ _ _ _ _ Iy) as [n' [Hn' ->]]. destruct (Kr _ _ Hn') as [Ky _].
        assert (n' = n) by congruence. now subst.
      * apply (find_none _ _ Fd) in I2. simpl in I2. now rewrite Nat.eqb_refl in I2.
    + unfold l at 1. rewrite find_none_in by auto. rewrite Same by auto. auto.
  - intro t. pose proof (O t) as Ot. unfold once in *.
    assert (New: forall x, In x r -> tm v x <> t -> aside x t).
    { intros x Hx Nx. split.
      2: { intros o' a' Si. exfalso.
           rewrite (site_none _ _ _ _ (defs_at _ _ _ _ _ Lb E K Hx) E) in Si; [discriminate|].
           now rewrite K. }
      apply In_nth_error in Hx. destruct Hx as [n Hn].
      destruct (Kr _ _ Hn) as [Kx _].
      assert (Lf: leaf (tm v x) = true) by (unfold Terms.leaf; now rewrite Kx).
      unfold Version.vcl. rewrite (cls_leaf L T table_ok _ Lf). now apply indep_leaf. }
    destruct (knd t) as [[n0| |j n0|o' cs]|] eqn:Kl; auto.
    + destruct Ot as [Fr|G]; [left|right; auto]. intros x A.
      destruct (avail_back _ _ _ _ _ Lb E K A) as [I|[_ A']]; auto.
      apply New; auto. intro; subst. simpl in I. apply In_nth_error in I. destruct I as [n Hn].
      destruct (Kr _ _ Hn). congruence.
    + destruct (Nat.eq_dec j i) as [->|Nj].
      * right. intros x A. rewrite EL in A. simpl in A. eapply FR; eauto.
      * destruct Ot as [Fr|G]; [left|right; auto]. intros x A.
        destruct (avail_back _ _ _ _ _ Lb E K A) as [I|[_ A']]; auto.
        apply New; auto. intro; subst. simpl in I. apply In_nth_error in I. destruct I as [n Hn].
        destruct (Kr _ _ Hn). congruence.
Qed.

Lemma taken_live (s : st V W) B : chk_last (sb s) (bn B) (lt B) = true ->
  (forall x, availb x (sb s) (bn B) = true -> se s x = D (ss s) (vcl x)) ->
  forall e, taken (lt B) (se s) = Some e -> In e (live_edges (lt B)).
Proof.
  intros H Rt e P. unfold Version.chk_last in H. bools. rewrite forallb_forall in H.
    unfold Version.taken in P.
  unfold Version.live_edges. destruct (constants L T (map vcl (la (lt B)))) as [cs|] eqn:Cs.
  - apply (constants_D L M T F table_ok) with (s := ss s) in Cs.
    replace (map (se s) (la (lt B))) with (map (val M) cs) in P.
    + rewrite (pick_ok _ _ F) in P. rewrite P. now left.
    + rewrite <- Cs, map_map. apply map_ext_in. intros x Hx. symmetry. auto.
  - eapply edge_no_in; eauto.
Qed.
Lemma taken_edge s B e : Inv s -> blk_at (sb s) = Some B -> sk s = bn B ->
  taken (lt B) (se s) = Some e ->
  In e (live_edges (lt B)) /\ chk_edge (sb s) (bn B) e = true.
Proof.
  intros I E K Tk. destruct (block_ok _ _ (inv_live _ I) E) as [_ [_ [_ CL]]].
  assert (Le: In e (live_edges (lt B))).
  { apply (taken_live s); auto. intros x A. apply (inv_right _ I). now rewrite K. }
  split; auto. unfold Version.chk_last in CL. apply andb_true_iff in CL. destruct CL as [_ CL].
  rewrite forallb_forall in CL. auto.
Qed.
(** Over an edge into its block, a merged read has its class in the memory that the edge brings. *)
Lemma merge_edge (s : st V W) (s1 : nat -> V) e (B' : blk op) m a found : TL (ss s) ->
  merges (ss s) (sb s) ->
  merged_at m = Some (a, found) -> home v (am a) = dst e -> is_block (dst e) = true ->
  (forall m, In m (mreads v (dst e)) ->
    chk_merge (sb s) (combine (ps B') (ea e)) (dst e) m = true) ->
  (forall y, is_above (home v (am a)) y = true -> s1 y = ss s y) ->
  (forall x, find (fun y => leafb (dst e) (fst y) && (tm v (fst y) =? am a))
                  (combine (ps B') (ea e)) = Some x -> s1 (am a) = D (ss s) (vcl (snd x))) ->
  D s1 m = D s1 (cls m).
Proof.
  intros Ts Mg Ma Hh Lf Mm Above Mem. pose proof (chk_merged_all m) as Cm.
    unfold Version.chk_merged in Cm.
  rewrite Ma, Hh, Lf in Cm. simpl in Cm. apply andb_true_iff in Cm. destruct Cm as [Cm Cc].
  apply andb_true_iff in Cm. destruct Cm as [Ci Cx]. apply inb_In in Ci.
  pose proof (Mm _ Ci) as Ch. unfold Version.chk_merge in Ch. rewrite Ma in Ch.
  destruct (find _ (combine (ps B') (ea e))) as [[z y]|] eqn:Fd; [|discriminate].
  specialize (Mem _ eq_refl). simpl in Mem. apply existsb_exists in Ch. destruct Ch as [r [_ Ch]].
  destruct (read_at L T r) as [f|] eqn:Rf; [|discriminate].
  apply andb_true_iff in Ch. destruct Ch as [Ch Hr]. apply andb_true_iff in Ch.
    destruct Ch as [Ch Cr].
  apply andb_true_iff in Ch. destruct Ch as [Lk Am]. apply Nat.eqb_eq in Cr. apply Nat.eqb_eq in Am.
  apply (like_ok L M F) in Lk. destruct Lk as [Eo Ex].
  unfold Version.merged_at in Ma. destruct (at_ T m) as [e0|]; [|discriminate].
  destruct (tb e0); try discriminate. destruct (read_at L T m) as [a'|] eqn:Ra; [|discriminate].
  destruct (isparam (am a')) eqn:Ip; [|discriminate]. inversion Ma; subst a' found0; clear Ma.
  pose proof (shapes L T table_ok) as Sh. rewrite Hh in Above.
  destruct (access_ok L M T Sh s1 (reads L) m a Ra) as [_ D1].
  destruct (access_ok L M T Sh (ss s) (reads L) r f Rf) as [_ Dr].
  assert (Lm: leaf (am a) = true)
    by (unfold Version.isparam in Ip; unfold Terms.leaf; destruct (knd (am a)) as [[]|]; auto).
  rewrite (AL_agree L M T table_ok _ s1 (ss s) _ Cc Above), <- Cr.
  rewrite <- (class_sound L M T F rules table_ok _ Ts).
  - rewrite D1, Dr, Eo, Ex, Am, (D_leaf M T _ _ Lm), Mem. f_equal. f_equal.
    apply map_ext_in. intros x Hx. rewrite forallb_forall in Cx.
    exact (AL_agree L M T table_ok _ s1 (ss s) _ (Cx _ Hx) Above).
  - intros m' Hm'. rewrite forallb_forall in Hr. auto.
Qed.
Lemma inv_edge s B e s' : Inv s -> blk_at (sb s) = Some B -> inst_at B (sk s) = None ->
  taken (lt B) (se s) = Some e -> enter s e = Some s' -> Inv s'.
Proof.
  intros [Ts Mg Lb [B0 [E0 K0]] Rt O] E K P N.
  assert (Kl: sk s = bn B) by (apply inst_none in K; replace B0 with B in K0 by congruence; lia).
  destruct (block_ok _ _ Lb E) as [_ [_ [_ CL]]].
  assert (LE: In e (live_edges (lt B))).
  { apply (taken_live s); auto. intros x A; apply Rt; now rewrite Kl. }
  assert (CE: chk_edge (sb s) (bn B) e = true).
  { unfold Version.chk_last in CL. bools. rewrite forallb_forall in H0. auto. }
  destruct (edge_ok _ _ _ CE) as [B' [E' [L' [N0 [Len [Av [Dm [Pm Mm]]]]]]]].
  unfold Version.enter in N. rewrite E' in N. inversion N; subst s'; clear N.
  destruct (block_ok _ _ L' E') as [Pl [ND [_ _]]].
  set (cmb := combine (ps B') (ea e)) in *.
  assert (Avs: forall x a, In (x, a) cmb -> se s a = D (ss s) (vcl a)).
  { intros x a I. apply Rt. rewrite Kl. apply Av. eapply in_combine_r; eauto. }
  assert (Fits: fits_leaves (combine (ps B') (map (se s) (ea e))) (dst e)).
  { intros x a I Lx. assert (Q: exists y, In (x, y) cmb /\ a = se s y).
    { clear -I. unfold cmb. revert I. generalize (ea e). induction (ps B') as [|z zs IH];
        intros [|y ys] I; simpl in *; try contradiction.
      destruct I as [Q|I]; [inversion Q; subst; eauto|]. destruct (IH _ I) as [u [Iu Q]]. eauto. }
    destruct Q as [y [Iy ->]]. rewrite (Avs _ _ Iy). pose proof (Pm _ _ Iy) as Z.
    unfold Version.chk_param in Z. rewrite Lx in Z. destruct (find _ cmb) as [[u c]|] eqn:Fd;
      [|discriminate].
    apply andb_true_iff in Z. destruct Z as [Z1 Z2]. apply Nat.eqb_eq in Z1. apply Nat.eqb_eq in Z2.
    rewrite Z1, <- Z2. now apply (D_type L M T F table_ok). }
  (* A parameter that is no leaf has the class of its argument. *)
  assert (Copy: forall x, In x (ps B') -> leafb (dst e) x = false ->
    exists a, In (x, a) cmb /\ availb a (sb s) (sk s) = true /\ vcl a = vcl x).
  { intros x Hx Lx. destruct (in_combine (ps B') (ea e) x Len Hx) as [a Ha]. exists a. split; auto.
    split. { rewrite Kl. apply Av. eapply in_combine_r; eauto. }
    pose proof (Pm _ _ Ha) as Q. unfold Version.chk_param in Q. rewrite Lx in Q.
      now apply Nat.eqb_eq. }
  assert (Up: forall x, availb x (dst e) 0 = true -> ~ In x (ps B') ->
    availb x (sb s) (sk s) = true).
  { intros x A NI. rewrite Kl. eapply avail_up; eauto. }
  (* Nothing available there depends on the leaves that the block binds, but the parameters that
     bind them. *)
  assert (Ind: forall l, knd l = Some KParam -> home v l = dst e -> indep_home l).
  { intros l Kd Hl. pose proof (O l) as Ol. unfold once in Ol. rewrite Kd in Ol.
    destruct Ol as [Fr|G]; auto. intros x A Bx. rewrite Hl in *.
    destruct (in_dec Nat.eq_dec x (ps B')) as [I|NI].
    - assert (Lx: leafb (dst e) x = false).
      { unfold bindsb, Version.isdef in Bx. rewrite E' in Bx. apply inb_In in I. now rewrite I in
        Bx. }
      destruct (Copy _ I Lx) as [a [_ [Aa Q]]]. split; [rewrite <- Q; now apply Fr|].
      intros o' a' Si. now rewrite (site_param _ _ (Pl _ I)) in Si.
    - auto. }
  set (s1 := bindl (dst e) (combine (ps B') (map (se s) (ea e))) (ss s)).
  assert (Bound: forall t, (knd t = Some KParam /\ home v t = dst e) \/ s1 t = ss s t).
  { intro t. unfold s1. rewrite bindl_find.
    destruct (find (fun y => leafb (dst e) (fst y) && (tm v (fst y) =? t))
                   (combine (ps B') (map (se s) (ea e)))) as [[x c]|] eqn:Fd; auto.
    left. apply find_some in Fd. destruct Fd as [_ Q]. simpl in Q. apply andb_true_iff in Q.
    destruct Q as [Lx Q]. apply Nat.eqb_eq in Q. subst t.
    destruct (leafb_param _ _ Lx) as [Kx [Hx _]]. auto. }
  constructor; simpl; auto.
  - now apply bindl_typed.
  - intros m Hm. fold s1. pose proof Hm as Hm0. unfold Version.is_here in Hm.
    destruct (merged_at m) as [[am0 found]|] eqn:Ma; [|discriminate].
    apply andb_true_iff in Hm. destruct Hm as [Hd Hf]. apply inb_In in Hd.
    assert (Above: forall y, is_above (home v (am am0)) y = true -> s1 y = ss s y).
    { intros y Hy. destruct (Bound y) as [[Ky Hh]|]; auto. exfalso. unfold Version.is_above in Hy.
      rewrite Ky, Hh in Hy. apply andb_true_iff in Hy. destruct Hy as [Hy _].
      apply inb_In in Hd. now rewrite Hd in Hy. }
    destruct (Nat.eq_dec (home v (am am0)) (dst e)) as [Q|Q].
    + apply (merge_edge s s1 e B' m am0 found); auto; [now rewrite <- Q|].
      intros x Fd. unfold s1. rewrite bindl_find.
      rewrite (find_combine (fun y => leafb (dst e) y && (tm v y =? am am0))). fold cmb.
      fold cmb in Fd. rewrite Fd. simpl. apply find_some in Fd. destruct Fd as [I _].
      destruct x as [z y]. exact (Avs _ _ I).
    + apply (merges_stay (ss s) s1 (sb s) m Mg).
      * unfold Version.is_here. rewrite Ma, Hf, andb_true_r. apply inb_In. auto.
      * intros a' f' Ma'. assert (a' = am0) by congruence. subst a'. split; auto.
        destruct (Bound (am am0)) as [[_ Hh]|]; auto; contradiction.
  - exists B'. split; auto. lia.
  - subst s1. intros x A. simpl in *. unfold assign.
    assert (IB: forall c, (forall l, knd l = Some KParam -> home v l = dst e -> indep c l) ->
      D (bindl (dst e) (combine (ps B') (map (se s) (ea e))) (ss s)) c = D (ss s) c).
    { intros c Hc. apply bindl_indep; auto. intros y a _ Ly.
      destruct (leafb_param _ _ Ly) as [Ky [Hy _]]. auto. }
    destruct (in_dec Nat.eq_dec x (ps B')) as [I|NI].
    + destruct (in_combine (ps B') (ea e) x Len I) as [a Ha].
      assert (Q: find (fun y : nat * V => fst y =? x) (combine (ps B') (map (se s) (ea e)))
        = Some (x, se s a)).
      { rewrite (find_combine (fun y => y =? x)). now rewrite (find_nodup _ _ _ _ ND Ha). }
      rewrite Q. assert (Aa: availb a (sb s) (sk s) = true)
        by (rewrite Kl; apply Av; eapply in_combine_r; eauto).
      rewrite (Rt _ Aa). destruct (leafb (dst e) x) eqn:Lx.
      * destruct (leafb_param _ _ Lx) as [Kx [Hx [Lf Vx]]]. rewrite Vx, (D_leaf M T _ _ Lf).
        rewrite bindl_find, (find_combine (fun y => leafb (dst e) y && (tm v y =? tm v x))).
        pose proof (Pm _ _ Ha) as Z. unfold Version.chk_param in Z. rewrite Lx in Z. fold cmb.
        destruct (find _ cmb) as [[y b]|] eqn:Fd; [|discriminate].
        simpl. apply andb_true_iff in Z. destruct Z as [Z _]. apply Nat.eqb_eq in Z. rewrite Z.
        symmetry. apply Rt. rewrite Kl. apply Av.
        apply find_some in Fd. destruct Fd as [Fd _]. eapply in_combine_r; eauto.
      * pose proof (Pm _ _ Ha) as Z. unfold Version.chk_param in Z. rewrite Lx in Z.
        apply Nat.eqb_eq in Z. rewrite Z. symmetry. apply IB. intros l Kd Hl.
        pose proof (Ind l Kd Hl) as G.
        apply G; [now rewrite Hl|]. unfold bindsb.
        rewrite Hl, Lx. now rewrite andb_false_r.
    + rewrite find_none_in by auto. rewrite IB; auto. intros l Kd Hl.
      apply (Ind l Kd Hl); rewrite Hl; auto. unfold bindsb, Version.isdef. rewrite E'.
      destruct (inb x (ps B')) eqn:I; auto. apply inb_In in I. contradiction.
  - intro l. pose proof (O l) as Ol. unfold once in *.
    assert (New: forall x, In x (ps B') -> (knd l = Some KParam -> home v l <> dst e) ->
      free l (sb s) (sk s) -> aside x l).
    { intros x I Nl Fr. split.
      2: { intros o' a' Si. now rewrite (site_param _ _ (Pl _ I)) in Si. }
      destruct (leafb (dst e) x) eqn:Lx.
      - destruct (leafb_param _ _ Lx) as [Kx [Hx [Lf Vx]]]. rewrite Vx. apply indep_leaf; auto.
        intro; subst. now apply Nl.
      - destruct (Copy _ I Lx) as [a [_ [Aa Z]]]. rewrite <- Z. now apply Fr. }
    destruct (knd l) as [[n0| |j n0|o' cs]|] eqn:Kd; auto.
    + destruct (Nat.eq_dec (home v l) (dst e)) as [Q|Q]; [right; now apply Ind|].
      destruct Ol as [Fr|G]; [left|right; auto]. intros x A.
      destruct (in_dec Nat.eq_dec x (ps B')) as [I|NI]; auto.
    + destruct Ol as [Fr|G]; [left|right; auto]. intros x A.
      destruct (in_dec Nat.eq_dec x (ps B')) as [I|NI]; auto. apply New; auto. discriminate.
Qed.
Lemma inv_step s s' : Inv s -> step1 s = Some s' -> Inv s'.
Proof.
  intros I H. unfold Version.step1 in H. destruct (blk_at (sb s)) as [B|] eqn:E; [|discriminate].
  destruct (is_anch anch B (sk s) && stop (pid B (sk s))); [discriminate|].
  destruct (inst_at B (sk s)) as [[i x o a|i o a r]|] eqn:K.
  - inversion H; subst. eapply inv_pure; eauto.
  - destruct (effsem M o (map (se s) a) (sw s)) as [w' rs] eqn:Es. inversion H; subst.
    eapply inv_eff; eauto.
  - destruct (taken (lt B) (se s)) as [e|] eqn:P; [|discriminate]. eapply inv_edge; eauto.
Qed.
Lemma inv_start args w : length args = arity -> args_typed args -> Inv (start args w).
Proof.
  intros Len Ta. pose proof version_ok as VO. unfold Version.chk_version, Version.chk_first in VO.
    bools.
  match goal with Z : nats_eqb (doms v 0) [0] = true |- _ => apply nats_eqb_ok in Z;
    rename Z into Hdom end.
  match goal with Z : indexed _ 0 params0 = true |- _ => rename Z into Hind end.
  unfold Version.arity in Len. unfold Version.start.
  assert (E: exists B, blk_at 0 = Some B) by (unfold Version.blk_at; destruct (0 <? fn v) eqn:Q;
    eauto;
    apply Nat.ltb_ge in Q; lia).
  destruct E as [B E]. unfold Version.params0 in *. rewrite E in *.
  destruct (block_ok _ _ H E) as [Pl [ND [_ _]]].
  assert (KA: forall x, availb x 0 0 = true ->
    exists n, nth_error (ps B) n = Some x /\ knd (tm v x) = Some (KArg n)).
  { intros x A. destruct (avail_def _ _ _ A) as [d [p [X [Y [Z Hp]]]]]. rewrite Hdom in Z.
    destruct Z as [<-|[]]. specialize (Hp eq_refl). assert (p = 0) by lia. subst p.
    unfold Version.isdef in Y. rewrite E in Y. apply inb_In in Y. apply In_nth_error in Y.
    destruct Y as [n Hn]. exists n. split; auto.
    pose proof (indexed_ok _ _ _ Hind _ _ Hn) as G. simpl in G.
    destruct (knd (tm v x)) as [[m| |i0 n0|o' cs]|]; try discriminate. bools. now subst. }
  assert (Lf: forall x n, knd (tm v x) = Some (KArg n) -> leaf (tm v x) = true /\ vcl x = tm v x).
  { intros x n K. assert (Q: leaf (tm v x) = true) by (unfold Terms.leaf; now rewrite K).
    split; auto. unfold Version.vcl. eapply cls_leaf; eauto. }
  constructor; simpl; auto.
  - intro l. specialize (Ta l). destruct (knd l) as [[n0| |j n0|o' cs]|];
      try apply (dflt_typed _ _ F). now apply Ta.
  - (* No merged read has its block at the function entry: an edge leads to its block. *)
    intros m Hm. exfalso. unfold Version.is_here in Hm. destruct (merged_at m)
      as [[a found]|] eqn:Ma; [|discriminate].
    apply andb_true_iff in Hm. destruct Hm as [Hm Hb]. apply inb_In in Hm. rewrite Hdom in Hm.
    destruct Hm as [Hm|[]]. unfold Version.is_block in Hb. rewrite <- Hm in Hb. discriminate.
  - exists B. split; auto. lia.
  - intros x A. simpl in *. destruct (KA _ A) as [n [Hn K]]. destruct (Lf _ _ K) as [Q ->].
    rewrite (D_leaf M T _ _ Q). rewrite K. unfold assign.
    destruct (nth_error args n) as [a|] eqn:An.
    + rewrite (find_nodup _ _ x a ND); [|eapply in_combine_nth; eauto].
      symmetry. now apply nth_error_nth.
    + apply nth_error_None in An.
      assert (n < length (ps B)) by (apply nth_error_Some; congruence). lia.
  - intro l. unfold once. destruct (knd l) as [[n0| |j n0|o' cs]|] eqn:Kl; auto;
    (left; intros x A; destruct (KA _ A) as [n [Hn K]]; destruct (Lf _ _ K) as [Q Vx];
     split; [rewrite Vx; apply indep_leaf; auto; intro; subst; congruence|];
     intros o1 a1 Si; apply nth_error_In in Hn; now rewrite (site_param _ _ (Pl _ Hn)) in Si).
Qed.
(** *** What a step leaves as it is *)
(** Over an effect, the operands of available values keep their contents. *)
Lemma eff_stays s B i o a r w' rs y c : Inv s -> blk_at (sb s) = Some B ->
  inst_at B (sk s) = Some (IEff i o a r) -> effsem M o (map (se s) a) (sw s) = (w', rs) ->
  availb y (sb s) (sk s) = true -> (forall l, aside y l -> indep c l) ->
  D (bindr (combine r (pad o (length r) rs)) (ss s)) c = D (ss s) c.
Proof.
  intros I E K Es Ay Ind. pose proof I as [Ts Mg Lb [B0 [E0 K0]] Rt O].
  destruct (block_ok _ _ Lb E) as [_ [_ [BI _]]]. pose proof (BI _ _ K) as H.
  assert (Kr: forall n x, nth_error r n = Some x ->
    knd (tm v x) = Some (KRes i n) /\ tty (tm v x) = ety L o n)
    by (intros; eapply (res_kind (sb s) (sk s) i o a r); eauto).
  assert (EL: eloc v i = (sb s, sk s)).
  { simpl in H. bools. destruct (eloc v i); simpl in *; congruence. }
  apply bindr_indep; auto.
  - intros x d J. destruct (in_results _ _ _ _ _ J) as [n [Hn ->]]. destruct (Kr _ _ Hn) as [_ ->].
    replace rs with (snd (effsem M o (map (se s) a) (sw s))) by (now rewrite Es).
    apply (eff_typed _ _ F). apply (dflt_typed _ _ F).
  - intros x d J. destruct (in_results _ _ _ _ _ J) as [n [Hn _]]. destruct (Kr _ _ Hn) as [Kx _].
    apply Ind. pose proof (O (tm v x)) as Ox. unfold once in Ox. rewrite Kx in Ox.
    destruct Ox as [Fr|G]; [now apply Fr|]. apply G. now rewrite EL.
Qed.
(** Over an edge, too, but for the parameters of the block that is entered. *)
Lemma edge_stays s B e s' B' y c : Inv s -> blk_at (sb s) = Some B -> inst_at B (sk s) = None ->
  taken (lt B) (se s) = Some e -> enter s e = Some s' -> blk_at (dst e) = Some B' ->
  availb y (dst e) 0 = true -> ~ In y (ps B') ->
  availb y (sb s) (sk s) = true /\
  ((forall l, aside y l -> indep c l) -> D (ss s') c = D (ss s) c).
Proof.
  intros I E K P N E' Ay NI. pose proof I as [Ts Mg Lb [B0 [E0 K0]] Rt O].
  apply inst_none in K. assert (Kl: sk s = bn B) by (replace B0 with B in K0 by congruence; lia).
  destruct (taken_edge s B e I E Kl P) as [_ CE].
  destruct (edge_ok _ _ _ CE) as [B2 [E2 [_ [_ [Len [Av [_ [Pm _]]]]]]]].
  assert (B2 = B') by congruence. subst B2.
  assert (Up: availb y (sb s) (sk s) = true) by (rewrite Kl; eapply avail_up; eauto).
  split; auto. intro Ind. unfold Version.enter in N. rewrite E' in N. inversion N; subst s';
    clear N.
  simpl. apply bindl_indep; auto.
  - intros x a J Lx. assert (Q: exists z, In (x, z) (combine (ps B') (ea e)) /\ a = se s z).
    { clear -J. revert J. generalize (ea e). induction (ps B') as [|z zs IH];
        intros [|u us] J; simpl in *; try contradiction.
      destruct J as [Q|J]; [inversion Q; subst; eauto|]. destruct (IH _ J) as [t [Jt Q]]. eauto. }
    destruct Q as [z [Iz ->]]. rewrite (Rt z) by (rewrite Kl; apply Av; eapply in_combine_r; eauto).
    pose proof (Pm _ _ Iz) as Z. unfold Version.chk_param in Z. rewrite Lx in Z.
    destruct (find _ (combine (ps B') (ea e))) as [[t d]|] eqn:Fd; [|discriminate].
    apply andb_true_iff in Z. destruct Z as [Z1 Z2]. apply Nat.eqb_eq in Z1. apply Nat.eqb_eq in Z2.
    rewrite Z1, <- Z2. now apply (D_type L M T F table_ok).
  - intros x a _ Lx. destruct (leafb_param _ _ Lx) as [Kx [Hx _]]. apply Ind.
    pose proof (O (tm v x)) as Ox. unfold once in Ox. rewrite Kx in Ox.
    destruct Ox as [Fr|G]; [now apply Fr|]. apply G; rewrite Hx; auto.
    unfold bindsb, Version.isdef. rewrite E'. destruct (inb y (ps B')) eqn:J; auto.
    apply inb_In in J. contradiction.
Qed.

(** At every point that a run reaches, every available value holds what its class stands for. *)
Theorem version_sound args w s : length args = arity -> args_typed args ->
  reach (start args w) s -> Inv s.
Proof. intros Len Ta Rc. induction Rc; [now apply inv_start|eapply inv_step; eauto]. Qed.
End Sound.
