(** [rules_hold]: a term that passes the test of rules ([instance]) is equal to its class. *)
From Coq Require Import List Arith ZArith Lia Bool String.
Import ListNotations.
From Osier Require Import Util Terms Classes Integers Bits Operations Meaning Rules Rows Matching.
From Osier Require Import Concrete.
Local Open Scope Z_scope.

Section Instance.
Context {W : Type} (K : machine W) (run : fcode -> list Z -> option Z).
Hypothesis floats : FloatsFold run K.
Variable T : table code citation.
Definition rule_lang : Lang Z code citation := osier run (instance run).
Notation M := (osier_sem K).
Notation operate := (operate K).
Notation cls := (cls T).
Notation tty := (tty T).
Notation op_at := (op_at T).
Notation const_of := (const_of run T).
Notation is_const := (is_const run T).
Notation mask_at := (mask_at T).
Hypothesis table_ok : chk_table rule_lang T = true.
Variable s : nat -> value.
Hypothesis typed_leaves : TL M T s.
Notation De := (Terms.D M T s).
Variable t : nat.
Hypothesis earlier : forall u, (u < t)%nat -> relies T t u = true -> De u = De (cls u).

Lemma F : Faithful rule_lang M.
Proof. now apply osier_faithful. Qed.
Lemma shapes_ok : chk_shapes rule_lang T = true.
Proof. apply (shapes _ _ table_ok). Qed.
Lemma De_typed u : has_type (tty u) (De u).
Proof. exact (D_typed rule_lang M T F shapes_ok s u typed_leaves). Qed.
Lemma De_op u o args : op_at u = Some (o, args) ->
  De u = operate o (map De args) /\ tty u = result_type o /\ takes o (map tty args) = true.
Proof.
  unfold Matching.op_at. destruct (knd T u) as [[]|] eqn:Ku; try discriminate. intro H.
  inversion H; subst. split; [exact (op_D rule_lang M T shapes_ok s u o args Ku)|].
  destruct (op_shape rule_lang T shapes_ok u o args Ku) as [Ty [Sg _]]. auto.
Qed.
Lemma De_const c k : const_of c = Some k -> De c = VBits k.
Proof. exact (const_D rule_lang M T F shapes_ok c k s). Qed.
Lemma is_const_ok c z : is_const c z = true -> De c = VBits z.
Proof.
  unfold Matching.is_const. destruct (const_of c) as [k|] eqn:E; [|discriminate]. intro H.
  apply Z.eqb_eq in H. subst. now apply De_const.
Qed.
Lemma usable_ok u c : usable T t u c = true -> De u = De c /\ tty u = tty c.
Proof.
  unfold usable. intro H.
  repeat (apply andb_true_iff in H; let Q := fresh "Q" in destruct H as [H Q]).
  apply Nat.ltb_lt in H. apply Nat.eqb_eq in Q. apply Nat.eqb_eq in Q0. subst c. split; auto.
Qed.
Lemma head_shape u o args h r v : op_at u = Some (o, args) -> head_of o = Some (h, r, v) ->
  o = make h r v /\ proper h r v = true /\ map tty args = sources h r v.
Proof.
  intros E H. destruct (De_op _ _ _ E) as [_ [_ Tk]]. apply head_make in H. subst o.
  apply takes_make in Tk. tauto.
Qed.

(** ** Binding *)
Definition part {A} (a b : option A) : Prop := forall x, a = Some x -> b = Some x.
Definition below (b B : bound) : Prop :=
  part (bx b) (bx B) /\ part (by_ b) (by_ B) /\ part (bc b) (bc B) /\ part (bd b) (bd B).
Lemma below_refl b : below b b.
Proof. unfold below, part. auto. Qed.
Lemma below_trans a b c : below a b -> below b c -> below a c.
Proof. unfold below, part. intuition. Qed.
Definition env_of (B : bound) : env :=
  Env (De (of_nat (bx B))) (tty (of_nat (bx B))) (De (of_nat (by_ B))) (tty (of_nat (by_ B)))
    (of_z (bc B)) (of_z (bd B)).
Notation fit B := (fit K (env_of B)).
Notation fits B := (fits K (env_of B)).

Lemma put_ok o a : put o a = true -> part o (Some a).
Proof.
  unfold put, part. destruct o; [|discriminate]. intros H x E. apply Nat.eqb_eq in H. congruence.
Qed.
Lemma put_z_ok o a : put_z o a = true -> part o (Some a).
Proof.
  unfold put_z, part. destruct o; [|discriminate]. intros H x E. apply Z.eqb_eq in H. congruence.
Qed.
Lemma rev_types h r v args o : o = make h r v -> commuting o = true ->
  map tty args = sources h r v ->
  map tty (rev args) = sources h r v /\ operate o (map De (rev args)) = operate o (map De args).
Proof.
  intros -> Cm E. destruct h; try discriminate. simpl in E.
  destruct args as [|a [|b [|]]]; try discriminate. injection E as Ea Eb.
  simpl. split; [now rewrite Ea, Eb|]. now apply commuting_ok.
Qed.
Lemma bind_ok p : forall f a b b', bind run T t p f a b = Some b' ->
  below b b' /\ forall B, below b' B -> fit B p (tty a) (De a).
Proof.
  revert p. fix IH 1. intros p f a b b' H.
  assert (Ty: has_type (tty a) (De a)) by apply De_typed.
  assert (Same: forall z, (if is_const a z then Some b else None) = Some b' ->
    b' = b /\ De a = VBits z).
  { intros z. destruct (is_const a z) eqn:E; [|discriminate]. intro Q. inversion Q.
    split; auto. now apply is_const_ok. }
  destruct p; simpl in H.
  - destruct (put (bx b) a) eqn:P; [|discriminate]. inversion H; subst; clear H.
    apply put_ok in P. split; [unfold below, part in *; simpl; intuition|].
    intros B [Hx _]. specialize (Hx a eq_refl). split; auto. simpl. now rewrite Hx.
  - destruct (put (by_ b) a) eqn:P; [|discriminate]. inversion H; subst; clear H.
    apply put_ok in P. split; [unfold below, part in *; simpl; intuition|].
    intros B [_ [Hy _]]. specialize (Hy a eq_refl). split; auto. simpl. now rewrite Hy.
  - destruct (Same _ H) as [-> E]. split; [apply below_refl|]. intros B _. split; auto.
  - destruct (Same _ H) as [-> E]. split; [apply below_refl|]. intros B _. split; auto.
  - destruct (Same _ H) as [-> E]. split; [apply below_refl|]. intros B _. split; auto.
  - destruct (const_of a) as [k|] eqn:E; [|discriminate]. destruct (k =? 0) eqn:Z0; [discriminate|].
    inversion H; subst. split; [apply below_refl|]. intros B _. split; auto. exists k.
    split; [now apply De_const|]. now apply Z.eqb_neq.
  - destruct (Same _ H) as [-> E]. split; [apply below_refl|]. intros B _. split; auto.
  - destruct (const_of a) as [k|] eqn:E; [|discriminate].
    destruct (put_z (bc b) k) eqn:P; [|discriminate]. inversion H; subst; clear H.
    apply put_z_ok in P. split; [unfold below, part in *; simpl; intuition|].
    intros B [_ [_ [Hc _]]]. specialize (Hc k eq_refl). split; auto. simpl. rewrite Hc.
    now apply De_const.
  - destruct (const_of a) as [k|] eqn:E; [|discriminate].
    destruct (put_z (bd b) k) eqn:P; [|discriminate]. inversion H; subst; clear H.
    apply put_z_ok in P. split; [unfold below, part in *; simpl; intuition|].
    intros B [_ [_ [_ Hd]]]. specialize (Hd k eq_refl). split; auto. simpl. rewrite Hd.
    now apply De_const.
  - destruct f as [|u sw fs]; [discriminate|].
    destruct (op_at u) as [[o args]|] eqn:Ou; [|discriminate].
    destruct (head_of o) as [[[h' r] v]|] eqn:Ho; [|discriminate].
    destruct (usable T t u a && head_eqb h h' && (negb sw || commuting o)) eqn:G; [|discriminate].
    apply andb_true_iff in G. destruct G as [G Sw]. apply andb_true_iff in G. destruct G as [Us Eh].
    apply head_eqb_ok in Eh. subst h'. destruct (usable_ok _ _ Us) as [Du Tu].
    destruct (head_shape _ _ _ _ _ _ Ou Ho) as [Mo [Pr Sr]].
    destruct (De_op _ _ _ Ou) as [Dop [Tr _]].
    set (l' := if sw then rev args else args) in *.
    assert (L: map tty l' = sources h r v /\ operate o (map De l') = operate o (map De args)).
    { unfold l'. destruct sw; [|auto]. now apply (rev_types h r v). }
    destruct L as [Lt Lo].
    assert (All: forall l fs l' b b', binds run T t l fs l' b = Some b' ->
      below b b' /\ forall B, below b' B -> fits B l (map tty l') (map De l')).
    { clear -IH. intro l. induction l as [|p l IHl]; intros fs l' b b' H; destruct l' as [|a l'];
        try discriminate.
      - inversion H; subst. split; [apply below_refl|]. intros; reflexivity.
      - simpl in H. destruct (bind run T t p (hd Here fs) a b) as [b1|] eqn:E1; [|discriminate].
        destruct (IH _ _ _ _ _ E1) as [B1 F1]. destruct (IHl _ _ _ _ H) as [B2 F2].
        split; [eapply below_trans; eauto|]. intros B HB. exists (De a), (map De l').
        split; auto. split; [apply F1; eapply below_trans; eauto|]. now apply F2. }
    destruct (All _ _ _ _ _ H) as [Bl Fi]. split; auto. intros B HB. apply fit_op. split; auto.
    exists r, v, (map De l'). subst o. rewrite <- Du, Dop, Lo. split; auto. split; [congruence|].
    split; auto. rewrite <- Lt. now apply Fi.
Qed.
Lemma binds_ok l : forall fs l' b b', binds run T t l fs l' b = Some b' ->
  below b b' /\ forall B, below b' B -> fits B l (map tty l') (map De l').
Proof.
  induction l as [|p l IHl]; intros fs l' b b' H; destruct l' as [|a l']; try discriminate.
  - inversion H; subst. split; [apply below_refl|]. intros; reflexivity.
  - simpl in H. destruct (bind run T t p (hd Here fs) a b) as [b1|] eqn:E1; [|discriminate].
    destruct (bind_ok _ _ _ _ _ E1) as [B1 F1]. destruct (IHl _ _ _ _ H) as [B2 F2].
    split; [eapply below_trans; eauto|]. intros B HB. exists (De a), (map De l').
    split; auto. split; [apply F1; eapply below_trans; eauto|]. now apply F2.
Qed.

(** ** Bits that may be set *)
Notation number_of c := (number (De c)).
Definition masks_ok (l : masks) : Prop := forall c, within_mask (mask_at l c) (number_of c).
Lemma width_nonneg n : 0 <= width_of n.
Proof. unfold width_of. do 11 (destruct n; try lia). Qed.
Lemma type_mask c : within_mask (Z.ones (width_of (tty c))) (number_of c).
Proof.
  pose proof (De_typed c) as H. unfold has_type in H. destruct (Nat.eqb _ memory_type).
  - destruct H as [m ->]. apply Z.land_0_l.
  - destruct H as [z [-> Hz]]. apply mask_width; auto. apply width_nonneg.
Qed.
Lemma number_op u o args : op_at u = Some (o, args) ->
  Nat.eqb (result_type o) memory_type = false ->
  number_of u = wrap (width_of (result_type o)) (number (raw K o (map De args))).
Proof.
  intros E N. destruct (De_op _ _ _ E) as [-> _]. unfold Meaning.operate, coerce. now rewrite N.
Qed.
Lemma load_mask a n x m : within_mask (Z.ones (8 * Z.of_nat n)) (load a n x m).
Proof.
  apply mask_width; [lia|]. unfold load. induction n as [|n IH]; [simpl; lia|].
  cbn [Bytes.from_bytes]. set (b := wrap 8 _). assert (0 <= b < 2 ^ 8) by (apply wrap_range; lia).
  replace (8 * Z.of_nat (S n)) with (8 * Z.of_nat n + 8) by lia. rewrite Z.pow_add_r by lia. nia.
Qed.
Lemma own_ok l u : masks_ok l -> within_mask (own_mask run T l u) (number_of u).
Proof.
  intro Ml. unfold own_mask. destruct (const_of u) as [k|] eqn:Ck.
  { rewrite (De_const _ _ Ck). apply Z.land_diag. }
  destruct (op_at u) as [[o args]|] eqn:E; [|apply mask_all].
  assert (Cut: forall m, Nat.eqb (result_type o) memory_type = false ->
    within_mask m (number (raw K o (map De args))) -> within_mask m (number_of u)).
  { intros m N H. rewrite (number_op _ _ _ E N). apply mask_wrap; auto. apply width_nonneg. }
  destruct o; try apply mask_all.
  - destruct o; try apply mask_all. destruct args as [|x [|]]; try apply mask_all.
    apply Cut; [reflexivity|]. apply mask_bit.
  - destruct args as [|x [|y [|]]]; try apply mask_all.
    assert (Nm: is_compare o = false -> Nat.eqb (result_type (Binary o t0)) memory_type = false)
      by (intro C0; simpl; rewrite C0; apply not_memory).
    assert (Bit: is_compare o = true -> within_mask 1 (number_of u)).
    { intro Co. apply Cut; [simpl; now rewrite Co|].
      destruct o; try discriminate; apply mask_bit. }
    destruct o; simpl; try (now apply Bit); try apply mask_all; try (apply Cut; [now apply Nm|]).
    + now apply mask_land.
    + now apply mask_lor.
    + now apply mask_lxor.
    + destruct (const_of y) as [k|] eqn:Cy; [|apply mask_all]. simpl. rewrite (De_const _ _ Cy).
      now apply mask_shiftl.
    + destruct (const_of y) as [k|] eqn:Cy; [|apply mask_all]. simpl. rewrite (De_const _ _ Cy).
      now apply mask_shiftr.
  - destruct is_signed; [apply mask_all|]. destruct args as [|x [|]]; try apply mask_all.
    apply Cut; [apply not_memory|]. simpl. apply mask_wrap; auto. pose proof (bits_pos source). lia.
  - destruct args as [|x [|]]; try apply mask_all. apply Cut; [apply not_memory|]. exact (Ml x).
  - destruct args as [|c [|x [|y [|]]]]; try apply mask_all. apply Cut; [apply not_memory|]. simpl.
    destruct (_ =? 0).
    + rewrite Z.lor_comm. apply mask_either. auto.
    + apply mask_either. auto.
  - destruct args as [|x [|y [|]]]; try apply mask_all. apply Cut; [reflexivity|]. apply mask_bit.
  - destruct args as [|x [|]]; try apply mask_all. apply Cut; [reflexivity|]. apply mask_bit.
  - destruct is_signed; [apply mask_all|]. apply Cut; [apply not_memory|]. apply load_mask.
Qed.
Lemma learn_ok l f : masks_ok l -> masks_ok (learn run T t l f).
Proof.
  intros Ml c. destruct f as [d u]. unfold learn.
  destruct (Nat.eqb u d || usable T t u d) eqn:G; [|apply Ml].
  simpl. destruct (Nat.eqb d c) eqn:Q; [|apply Ml]. apply Nat.eqb_eq in Q. subst d.
  assert (De u = De c).
  { apply orb_true_iff in G. destruct G as [G|G]; [apply Nat.eqb_eq in G; now subst|].
    now apply usable_ok. }
  apply mask_and; [|apply Ml]. rewrite <- H. now apply own_ok.
Qed.
Lemma known_ok fs : masks_ok (known_masks run T t fs).
Proof.
  unfold known_masks. assert (G: forall l, masks_ok l -> masks_ok (fold_left (learn run T t) fs l)).
  { induction fs as [|f fs IH]; simpl; auto. intros l Ml. apply IH. now apply learn_ok. }
  apply G. intro c. apply type_mask.
Qed.

(** ** The condition and the right side *)
Lemma meets_ok m B g : masks_ok m -> meets_b T m B g = true -> meets (env_of B) g.
Proof.
  intros Mm H. unfold meets_b in H. destruct g; simpl; auto;
    destruct (bx B) as [x|]; try discriminate; simpl.
  - apply Z.eqb_eq in H. eapply mask_bool; eauto.
  - destruct (bc B); [|discriminate]. apply Z.eqb_eq in H. eapply mask_covered; eauto.
  - destruct (bc B); [|discriminate]. now apply Z.eqb_eq in H.
  - destruct (bd B); [|discriminate]. apply Z.eqb_eq in H. eapply mask_apart; eauto.
  - destruct (bd B); [|discriminate]. apply Z.eqb_eq in H. eapply mask_below; eauto.
  - apply Z.eqb_eq in H. eapply mask_covered; eauto.
  - destruct (bc B); [|discriminate]. apply Z.eqb_eq in H. now apply ldiff_covered.
  - destruct (bc B); [|discriminate]. apply Z.eqb_eq in H. now apply ldiff_covered.
Qed.
Lemma is_x_ok B a : is_x B a = true -> of_nat (bx B) = a.
Proof. unfold is_x. destruct (bx B); [|discriminate]. apply Nat.eqb_eq. Qed.
Lemma is_y_ok B a : is_y B a = true -> of_nat (by_ B) = a.
Proof. unfold is_y. destruct (by_ B); [|discriminate]. apply Nat.eqb_eq. Qed.
Lemma made_ok B m u z : made_b B m u = Some z -> made_of (env_of B) m u = z.
Proof.
  unfold made_b, made_of. simpl. destruct m; [congruence|destruct (bc B); simpl; congruence| |];
    (destruct (bc B); [|discriminate]); (destruct (bd B); [|discriminate]); simpl; congruence.
Qed.
Lemma binary_shape u o v args : op_at u = Some (Binary o v, args) ->
  map tty args = [tcode v; tcode v].
Proof. intro E. now destruct (head_shape _ _ _ (HBinary o) v v E eq_refl) as [_ [_ H]]. Qed.
Lemma swapped_binary o v x y : commutes o = true ->
  operate (Binary o v) [De x; De y] = operate (Binary o v) [De y; De x].
Proof. intro H. now apply commuting_ok. Qed.
Lemma gives_ok k B r args v : gives_b run T t k B r args v = true -> tty t = tty (cls t) ->
  gives K (env_of B) r (map De args) (tty t) (De (cls t)).
Proof.
  intros H Tc. unfold gives_b in H. destruct r; simpl.
  - apply is_x_ok in H. rewrite H. auto.
  - apply is_y_ok in H. rewrite H. auto.
  - destruct (nth_error args n) as [a|] eqn:E; [|discriminate]. apply Nat.eqb_eq in H. subst a.
    rewrite nth_error_map, E. reflexivity.
  - now apply is_const_ok.
  - now apply is_const_ok.
  - now apply is_const_ok.
  - apply andb_true_iff in H. destruct H as [Us H]. destruct (usable_ok _ _ Us) as [Du _].
    destruct (op_at (made_by k)) as [[o' a]|] eqn:E; [|discriminate].
    destruct o'; try discriminate.
    match type of E with _ = Some (Unary ?a ?b, _) => rename a into o', b into w end.
    destruct a as [|x [|]]; try discriminate. apply andb_true_iff in H. destruct H as [Eo Hx].
    destruct (unary_dec o o') as [<-|]; [|discriminate]. apply is_x_ok in Hx. rewrite Hx.
    destruct (head_shape _ _ _ (HUnary o) w w E eq_refl) as [_ [_ Sh]]. inversion Sh.
    exists w. split; auto. destruct (De_op _ _ _ E) as [Q _]. now rewrite <- Du, Q.
  - apply andb_true_iff in H. destruct H as [Us H]. destruct (usable_ok _ _ Us) as [Du _].
    destruct (op_at (made_by k)) as [[o' a]|] eqn:E; [|discriminate].
    destruct o'; try discriminate.
    match type of E with _ = Some (Binary ?a ?b, _) => rename a into o', b into w end.
    destruct a as [|x [|y [|]]]; try discriminate.
    pose proof (binary_shape _ _ _ _ E) as Sh. injection Sh as Tx Ty.
    destruct (De_op _ _ _ E) as [Q _]. rewrite <- Du, Q. exists w.
    destruct (made_swap k); repeat (apply andb_true_iff in H; let G := fresh "G" in
      destruct H as [H G]); destruct (binary_dec o o') as [<-|]; try discriminate;
      apply is_x_ok in G0; apply is_y_ok in G; rewrite G, G0; split; auto.
    simpl in G1. now apply swapped_binary.
  - apply andb_true_iff in H. destruct H as [Us H]. destruct (usable_ok _ _ Us) as [Du _].
    destruct (op_at (made_by k)) as [[o' a]|] eqn:E; [|discriminate].
    destruct o'; try discriminate.
    match type of E with _ = Some (Binary ?a ?b, _) => rename a into o', b into w end.
    destruct a as [|x [|y [|]]]; try discriminate.
    pose proof (binary_shape _ _ _ _ E) as Sh. injection Sh as Tx Ty.
    destruct (De_op _ _ _ E) as [Q _]. rewrite <- Du, Q. exists w.
    destruct (made_swap k); repeat (apply andb_true_iff in H; let G := fresh "G" in
      destruct H as [H G]); destruct (binary_dec o o') as [<-|]; try discriminate;
      apply is_x_ok in G0; (destruct (made_b B m w) as [z|] eqn:Mz; [|discriminate]);
      apply is_const_ok in G; apply made_ok in Mz; rewrite G0, Mz, <- G; split; auto.
    simpl in G1. now apply swapped_binary.
  - destruct (bx B) as [x|] eqn:Ex; [|discriminate].
    destruct (made_b B m v) as [z|] eqn:Mz; [|discriminate].
    repeat (apply andb_true_iff in H; let G := fresh "G" in destruct H as [H G]).
    apply Nat.eqb_eq in H. apply Nat.eqb_eq in G0. apply is_const_ok in G. apply made_ok in Mz.
    exists v. split; [exact H|]. split; [exact G0|]. now rewrite Mz.
Qed.
Theorem instance_ok k : instance run T k t = true -> De t = De (cls t).
Proof.
  unfold instance. destruct (nth_error rows (of_row k)) as [r|] eqn:Er; [|discriminate].
  destruct (op_at t) as [[o args]|] eqn:E; [|discriminate].
  destruct (head_of o) as [[[h s0] v]|] eqn:Ho; [|discriminate]. intro H.
  repeat (apply andb_true_iff in H; let G := fresh "G" in destruct H as [H G]).
  apply head_eqb_ok in H. apply Nat.eqb_eq in G0.
  set (l := if swap k then rev args else args) in *.
  destruct (binds run T t (operands r) (inner k) l nothing) as [B|] eqn:Eb; [|discriminate].
  apply andb_true_iff in G. destruct G as [Gm Gg].
  destruct (head_shape _ _ _ _ _ _ E Ho) as [Mo [Pr Sh]].
  destruct (De_op _ _ _ E) as [Dt [Tt _]].
  assert (L: map tty l = sources h s0 v /\ operate o (map De l) = operate o (map De args)).
  { unfold l. destruct (swap k); [|auto]. now apply (rev_types h s0 v). }
  destruct L as [Lt Lo]. destruct (binds_ok _ _ _ _ _ Eb) as [_ Fi].
  specialize (Fi B (below_refl B)). rewrite Lt in Fi.
  pose proof (proj1 (Forall_forall _ _) (rows_hold K) r (nth_error_In _ _ Er)) as Row.
  rewrite Dt, <- Lo, Mo. rewrite <- H in *. apply (Row (env_of B)); auto.
  - destruct (only r) as [w|]; auto. now apply ty_eqb_ok.
  - eapply meets_ok; eauto. apply known_ok.
  - rewrite <- Mo, <- Tt. now apply gives_ok with (k := k) (v := v).
Qed.
End Instance.
(** No rule is a hypothesis. *)
Theorem rules_hold {W} (K : machine W) run T : FloatsFold run K ->
  RulesHold (rule_lang run) (osier_sem K) T.
Proof.
  intros Fl k t Tok Rk s Ts Before. exact (instance_ok K run Fl T Tok s Ts t Before k Rk).
Qed.
