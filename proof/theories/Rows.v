(** [rows_hold]: every row of the table holds, for all types and all contents. *)
From Coq Require Import List Arith ZArith Lia Bool String.
Import ListNotations.
From Osier Require Import Util Terms Integers Bits Operations Meaning Rules.
Local Open Scope Z_scope.

Section Rows.
Context {W : Type} (K : machine W).
Notation operate := (operate K).
Notation row_holds := (row_holds K).

(** Opens the patterns of a row: contents become numbers, and types are named once. *)
Ltac take_apart := repeat match goal with
  | H : exists _, _ |- _ => destruct H
  | H : _ /\ _ |- _ => destruct H
  | H : ?v = VBits _ |- _ => is_var v; subst v
  | H : ?v = ?u |- _ => is_var v; is_var u; subst v
  | H : ?l = _ :: _ |- _ => is_var l; subst l
  | H : ?l = [] |- _ => is_var l; subst l
  | H : ?n = tcode _ |- _ => is_var n; subst n
  | H : tcode _ = ?n |- _ => is_var n; subst n
  | H : ?v = Meaning.operate _ _ _ |- _ => is_var v; subst v
  | H : tcode ?a = tcode ?b |- _ => apply tcode_inj in H; try subst
  | H : has_type (tcode _) ?v |- _ => is_var v; apply typed_bits in H
  | H : has_type (tcode _) (VBits _) |- _ => apply typed_bits in H
  | H : has_type (tcode _) (Meaning.operate _ _ _) |- _ => clear H
  | H : VBits _ = VBits _ |- _ => injection H as H; try subst
  end.
Ltac open := intros [x xt y yt c d] s t vs v Pr On Fs Gd Gv;
  cbv [rule guarded of_type not_compare masked masks clears Un Bi Sx only condition result operands opcode
    meets gives vx tx vy ty_ vc vd] in *;
  cbn [fits fit sources result_type make is_test is_compare vx tx vy ty_ vc vd] in Pr, Fs, Gv |- *;
  take_apart;
  repeat first [rewrite op_binary | rewrite op_unary | rewrite op_select | rewrite op_extend
    | rewrite op_wrap];
  unfold made_of; cbn [is_compare is_test binary_of unary_of vc vd]; cbn [number] in Gd;
  rewrite ?width_tcode in *;
  repeat match goal with
    | |- context [bits ?t] => is_var t; lazymatch goal with
        | H : 8 <= bits t <= 64 |- _ => fail | _ => pose proof (bits_pos t) end
    end;
  try match goal with |- VBits _ = VBits _ => f_equal end.
Lemma wrap_0 w : wrap w 0 = 0.
Proof. apply Zmod_0_l. Qed.
Lemma mod_0 w : 0 mod w = 0.
Proof. apply Zmod_0_l. Qed.
Lemma shiftr_out w x : 0 <= w -> 0 <= x < 2 ^ w -> Z.shiftr x w = 0.
Proof. intros Hw Hx. rewrite Z.shiftr_div_pow2 by auto. now apply Z.div_small. Qed.
Lemma wrap_out w x : 0 <= w -> wrap w (Z.shiftl x w) = 0.
Proof.
  intro Hw. rewrite Z.shiftl_mul_pow2 by auto. unfold wrap. apply Z.mod_mul.
  pose proof (pow_gt w Hw). lia.
Qed.
Lemma not_bit b : bit (bit b =? 0) = bit (negb b).
Proof. now destruct b. Qed.
Lemma bit_0 b : b = false -> bit b = 0.
Proof. now intros ->. Qed.
Ltac tidy := repeat first
  [ rewrite Z.add_0_r | rewrite Z.sub_0_r | rewrite Z.mul_1_r | rewrite Z.mul_0_r
  | rewrite Z.land_0_r | rewrite Z.lor_0_r | rewrite Z.lxor_0_r | rewrite mod_0
  | rewrite Z.shiftl_0_r | rewrite Z.shiftr_0_r | rewrite Z.sub_diag | rewrite Z.land_diag
  | rewrite Z.lor_diag | rewrite Z.lxor_nilpotent | rewrite Z.eqb_refl | rewrite Z.ltb_irrefl
  | rewrite Z.leb_refl | rewrite Z.quot_1_r | rewrite Z.div_1_r | rewrite Z.rem_1_r
  | rewrite Z.mod_1_r | rewrite wrap_0 | rewrite signed_0 by lia | rewrite signed_1 by lia
  | rewrite wrap_signed | rewrite wrap_add_l | rewrite wrap_add_r | rewrite wrap_sub_l
  | rewrite wrap_sub_r | rewrite wrap_mul_l | rewrite wrap_mul_r | rewrite wrap_wrap
  | rewrite not_bit ].
Ltac close := tidy; try reflexivity; try (apply wrap_small; lia); try (rewrite wrap_small; lia);
  try (f_equal; lia).

Lemma lor_ones w x : 0 <= w -> 0 <= x < 2 ^ w -> Z.lor x (Z.ones w) = Z.ones w.
Proof.
  intros Hw Hx. apply Z.bits_inj'. intros n Hn. rewrite Z.lor_spec.
  destruct (Z.testbit (Z.ones w) n) eqn:E; [apply orb_true_r|]. rewrite orb_false_r.
  rewrite <- (small_mask w x Hw Hx), Z.land_spec, E. apply andb_false_r.
Qed.
Lemma signed_no_overflow w x : 0 < w -> bit (overflows w (signed w x)) = 0.
Proof. intro H. apply bit_0, fits_not_overflow; auto. now apply signed_range. Qed.
Lemma xor_cut w a b : 0 <= w -> wrap w (Z.lxor (wrap w a) b) = wrap w (Z.lxor a b).
Proof. intro H. now rewrite !wrap_lxor, wrap_wrap. Qed.
Lemma and_cut w a b : 0 <= w -> wrap w (Z.land (wrap w a) b) = wrap w (Z.land a b).
Proof. intro H. now rewrite wrap_land, wrap_wrap, <- wrap_land. Qed.
Lemma and_cut_r w a b : 0 <= w -> wrap w (Z.land a (wrap w b)) = wrap w (Z.land a b).
Proof. intro H. now rewrite wrap_land_r, wrap_wrap, <- wrap_land_r. Qed.
(** Sums and differences of extended numbers fit. *)
Lemma sums_fit v v' w x y : 0 < v < w -> 0 < v' < w ->
  bit (overflows w (signed w (wrap w (signed v x)) + signed w (wrap w (signed v' y)))) = 0 /\
  bit (overflows w (signed w (wrap w (signed v x)) - signed w (wrap w (signed v' y)))) = 0.
Proof.
  intros H H'. rewrite !signed_of_wrap, !signed_wider by lia.
  pose proof (signed_range v x ltac:(lia)). pose proof (signed_range v' y ltac:(lia)).
  pose proof (pow_mono (v - 1) (w - 2) ltac:(lia)).
  pose proof (pow_mono (v' - 1) (w - 2) ltac:(lia)).
  assert (2 ^ (w - 1) = 2 * 2 ^ (w - 2)).
  { replace (w - 1) with (Z.succ (w - 2)) by lia. apply Z.pow_succ_r. lia. }
  split; apply bit_0, fits_not_overflow; lia.
Qed.
(** The bits of a sign extension below [v]. *)
Lemma extended_mask v w x c : 0 < v <= w -> Z.land c (Z.ones v) = c ->
  wrap w (Z.land (wrap w (signed v x)) c) = wrap w (Z.land x c).
Proof.
  intros H E. rewrite and_cut by lia. f_equal.
  rewrite <- E, (Z.land_comm c), !Z.land_assoc, <- !wrap_ones by lia. now rewrite wrap_signed.
Qed.
Lemma masked_extend v w x c : 0 < v <= w -> Z.land (Z.ones v) c = Z.ones v ->
  signed v (wrap w (Z.land x c)) = signed v x.
Proof.
  intros H E. rewrite signed_narrow by lia. rewrite <- (signed_of_wrap v (Z.land x c)).
  rewrite wrap_ones, <- Z.land_assoc, (Z.land_comm c), E, <- wrap_ones by lia.
  apply signed_of_wrap.
Qed.
Lemma extended_nothing v w x m : 0 < v -> Z.land m (Z.ones v) = 0 -> Z.land x m = x ->
  wrap w (signed v x) = 0.
Proof.
  intros H E G. rewrite <- (signed_of_wrap v x), (wrap_ones v x), <- G, <- Z.land_assoc, E by lia.
  rewrite Z.land_0_r, signed_0 by lia. apply wrap_0.
Qed.
Lemma extended_again v w u x : 0 < v <= u -> v <= w ->
  signed v (wrap w (signed u x)) = signed v x.
Proof.
  intros H G. rewrite signed_narrow by lia.
  rewrite <- (signed_narrow v u (signed u x)), wrap_signed by lia. apply signed_narrow. lia.
Qed.
(** What the types of extensions say of their widths. *)
Ltac widths := repeat match goal with
  | H : proper (HUnary _) _ _ = true |- _ =>
    cbn [proper low_bits] in H; apply andb_true_iff in H; destruct H as [_ H]; apply Z.ltb_lt in H
  | H : proper (HExtend _) _ _ = true |- _ =>
    cbn [proper] in H; apply andb_true_iff in H; destruct H as [_ H]; apply Z.ltb_lt in H
  | H : proper HWrap _ _ = true |- _ =>
    cbn [proper] in H; apply andb_true_iff in H; destruct H as [_ H]; apply Z.ltb_lt in H
  end.

Ltac each_row := repeat apply Forall_cons; try apply Forall_nil.
Lemma neutral_hold : Forall row_holds neutral.
Proof.
  unfold neutral. each_row.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; tidy. rewrite small_mask by lia. apply wrap_small. lia.
  - open; close.
  - open; tidy. rewrite lor_ones by lia. rewrite wrap_ones by lia. apply Z.land_diag.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; tidy. rewrite shiftr_out, Z.lor_0_r by lia. apply wrap_small. lia.
  - open; tidy. rewrite wrap_lor, wrap_out, Z.lor_0_r by lia. apply wrap_small. lia.
Qed.
Lemma equal_hold : Forall row_holds equal.
Proof.
  unfold equal. each_row; open; close.
Qed.
Lemma fitting_hold : Forall row_holds fitting.
Proof.
  unfold fitting. each_row.
  - open; tidy. apply signed_no_overflow. lia.
  - open; tidy. apply signed_no_overflow. lia.
  - open; tidy. apply bit_0, fits_not_overflow; [lia|]. pose proof (pow_gt (bits t - 1)). lia.
  - open; tidy. apply bit_0, fits_not_overflow; [lia|]. pose proof (pow_gt (bits t - 1)). lia.
  - open; tidy. apply signed_no_overflow. lia.
  - open; tidy. widths. apply sums_fit; lia.
  - open; tidy. widths. apply sums_fit; lia.
  - open; tidy. destruct (x =? 0); apply wrap_small; lia.
  - open; tidy. destruct (Z.eqb_spec x 0); [contradiction|]. apply wrap_small. lia.
  - open; close.
  - open; tidy. destruct Gd; subst; simpl; apply wrap_small; lia.
Qed.
Lemma inverse_hold : Forall row_holds inverse.
Proof.
  unfold inverse. each_row.
  - open; close.
  - open; close.
  - open; close.
  - open; tidy.
    rewrite xor_cut, (Z.lxor_comm x x1), Z.lxor_assoc, Z.lxor_nilpotent, Z.lxor_0_r by lia.
    apply wrap_small. lia.
  - open; tidy. rewrite xor_cut, Z.lxor_assoc, Z.lxor_nilpotent, Z.lxor_0_r by lia.
    apply wrap_small. lia.
  - open; tidy. widths. rewrite wrap_narrow by lia. rewrite wrap_signed. apply wrap_small. lia.
  - open; tidy. widths. rewrite wrap_narrow by lia. rewrite wrap_wrap. apply wrap_small. lia.
  - open; tidy. widths. cbn [nth_error] in Gv. injection Gv as <-. rewrite op_unary.
    cbn [is_test unary_of]. rewrite signed_narrow, signed_signed by lia. reflexivity.
  - open; tidy. widths. cbn [nth_error] in Gv. injection Gv as <-. rewrite op_unary.
    cbn [is_test unary_of]. rewrite signed_narrow, signed_signed by lia. reflexivity.
  - open; tidy. widths. cbn [nth_error] in Gv. injection Gv as <-. rewrite op_unary.
    cbn [is_test unary_of]. rewrite signed_narrow, signed_signed by lia. reflexivity.
  - open; tidy. widths. cbn [nth_error] in Gv. injection Gv as <-. rewrite op_unary.
    cbn [is_test unary_of]. rewrite signed_narrow, signed_wider by lia. reflexivity.
  - open; tidy. widths. now rewrite extended_again by lia.
  - open; tidy. widths. now rewrite extended_again by lia.
  - open; tidy. widths. now rewrite extended_again by lia.
Qed.
Lemma truth_hold : Forall row_holds truth.
Proof.
  unfold truth. each_row.
  - open; tidy. rewrite Gd. apply wrap_0.
  - open; close.
  - open; tidy. destruct Gd; subst; reflexivity.
  - open; tidy. destruct Gd; subst; reflexivity.
  - open; tidy. destruct Gd; subst; reflexivity.
  - open; close.
  - open; close.
  - open; close.
Qed.
Lemma negated_hold : Forall row_holds negated.
Proof.
  unfold negated. each_row; open; close.
Qed.
Lemma merged_hold : Forall row_holds merged.
Proof.
  unfold merged. each_row.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; close.
  - open; tidy. now rewrite and_cut, and_cut_r, Z.land_assoc by lia.
  - open; tidy. now rewrite !wrap_lor, !wrap_wrap, Z.lor_assoc by lia.
  - open; tidy. now rewrite !wrap_lxor, !wrap_wrap, Z.lxor_assoc by lia.
Qed.
Lemma tagged_hold : Forall row_holds tagged.
Proof.
  unfold tagged. each_row.
  - open; tidy. widths. rewrite wrap_narrow, wrap_lor, wrap_narrow, wrap_wrap by lia.
    rewrite (wrap_ones _ x), Gd, Z.lor_0_r by lia. apply wrap_small. lia.
  - open; tidy. rewrite wrap_land, wrap_wrap, <- wrap_land, Z.land_lor_distr_l, Gd by lia.
    reflexivity.
  - open; tidy. rewrite wrap_lor, (wrap_small _ x1), (wrap_small _ x2) by lia.
    now rewrite Z.shiftr_lor, Gd.
  - open; tidy. f_equal. exact (shifts_extend 32 24 x0 ltac:(lia)).
  - open; tidy. f_equal. exact (shifts_extend 32 16 x0 ltac:(lia)).
  - open; tidy. f_equal. exact (shifts_extend 64 32 x0 ltac:(lia)).
  - open; tidy. widths. apply extended_mask; [lia|assumption].
  - open; tidy. widths. apply extended_mask; [lia|assumption].
  - open; tidy. widths. apply extended_mask; [lia|assumption].
  - open; tidy. widths. now rewrite masked_extend by (try assumption; lia).
  - open; tidy. widths. now rewrite masked_extend by (try assumption; lia).
  - open; tidy. widths. now rewrite masked_extend by (try assumption; lia).
  - open; tidy. eapply extended_nothing; [lia| |exact Gd]. reflexivity.
  - open; tidy. eapply extended_nothing; [lia| |exact Gd]. reflexivity.
  - open; tidy. eapply extended_nothing; [lia| |exact Gd]. reflexivity.
Qed.
(** Every row holds, for all types and all contents. *)
Theorem rows_hold : Forall row_holds rows.
Proof.
  unfold rows. repeat (apply Forall_app; split);
    auto using neutral_hold, equal_hold, fitting_hold, inverse_hold, truth_hold, negated_hold,
      merged_hold, tagged_hold.
Qed.
End Rows.
