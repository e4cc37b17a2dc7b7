(** Facts about the bits of numbers, for the rules. *)
From Coq Require Import ZArith Znumtheory Lia Bool Btauto.
From Osier Require Import Integers.
Local Open Scope Z_scope.

(** All bits that are set in a number are set in the mask. *)
Definition within_mask (m z : Z) : Prop := Z.land z m = z.

Lemma wrap_ones w x : 0 <= w -> wrap w x = Z.land x (Z.ones w).
Proof. intro. unfold wrap. now rewrite Z.land_ones. Qed.
Lemma ones_minus w : 2 ^ w - 1 = Z.ones w.
Proof. rewrite Z.ones_equiv. lia. Qed.
Lemma small_mask w x : 0 <= w -> 0 <= x < 2 ^ w -> Z.land x (Z.ones w) = x.
Proof. intros Hw H. rewrite <- wrap_ones by auto. now apply wrap_small. Qed.
Lemma wrap_land w x y : 0 <= w -> wrap w (Z.land x y) = Z.land (wrap w x) y.
Proof.
  intro. rewrite !wrap_ones by auto. rewrite <- !Z.land_assoc. f_equal. apply Z.land_comm.
Qed.
Lemma wrap_land_r w x y : 0 <= w -> wrap w (Z.land x y) = Z.land x (wrap w y).
Proof. intro. rewrite Z.land_comm, wrap_land by auto. apply Z.land_comm. Qed.
Lemma wrap_lor w x y : 0 <= w -> wrap w (Z.lor x y) = Z.lor (wrap w x) (wrap w y).
Proof. intro. rewrite !wrap_ones by auto. apply Z.land_lor_distr_l. Qed.
Lemma wrap_lxor w x y : 0 <= w -> wrap w (Z.lxor x y) = Z.lxor (wrap w x) (wrap w y).
Proof.
  intro. rewrite !wrap_ones by auto. apply Z.bits_inj'. intros n Hn.
  rewrite !Z.land_spec, !Z.lxor_spec, !Z.land_spec. btauto.
Qed.
Lemma wrap_wrap w x : wrap w (wrap w x) = wrap w x.
Proof. apply Zmod_mod. Qed.
Lemma wrap_add_l w x y : wrap w (wrap w x + y) = wrap w (x + y).
Proof. apply Zplus_mod_idemp_l. Qed.
Lemma wrap_add_r w x y : wrap w (x + wrap w y) = wrap w (x + y).
Proof. apply Zplus_mod_idemp_r. Qed.
Lemma wrap_sub_l w x y : wrap w (wrap w x - y) = wrap w (x - y).
Proof. apply Zminus_mod_idemp_l. Qed.
Lemma wrap_sub_r w x y : wrap w (x - wrap w y) = wrap w (x - y).
Proof. apply Zminus_mod_idemp_r. Qed.
Lemma wrap_mul_l w x y : wrap w (wrap w x * y) = wrap w (x * y).
Proof. apply Zmult_mod_idemp_l. Qed.
Lemma wrap_mul_r w x y : wrap w (x * wrap w y) = wrap w (x * y).
Proof. apply Zmult_mod_idemp_r. Qed.
Lemma wrap_narrow v w x : 0 <= v <= w -> wrap v (wrap w x) = wrap v x.
Proof.
  intro H. unfold wrap. symmetry. apply Zmod_div_mod; try (apply pow_gt; lia).
  exists (2 ^ (w - v)). rewrite <- Z.pow_add_r by lia. f_equal. lia.
Qed.
Lemma wrap_multiple w x q : wrap w (x + 2 ^ w * q) = wrap w x.
Proof.
  unfold wrap.
  destruct (Z.eq_dec (2 ^ w) 0) as [->|N]; [now rewrite !Zmod_0_r, Z.mul_0_l, Z.add_0_r|].
  rewrite Z.mul_comm. now apply Z_mod_plus_full.
Qed.

(** ** Two's complement *)
Lemma half w : 0 < w -> 2 ^ w = 2 * 2 ^ (w - 1) /\ 0 < 2 ^ (w - 1).
Proof.
  intro H. split; [|apply pow_gt; lia]. replace w with (Z.succ (w - 1)) at 1 by lia.
  apply Z.pow_succ_r. lia.
Qed.
Lemma wrap_signed w x : wrap w (signed w x) = wrap w x.
Proof.
  unfold signed. destruct (_ <? _); [apply wrap_wrap|].
  replace (wrap w x - 2 ^ w) with (wrap w x + 2 ^ w * (-1)) by lia.
  rewrite wrap_multiple. apply wrap_wrap.
Qed.
Lemma signed_range w x : 0 < w -> - 2 ^ (w - 1) <= signed w x < 2 ^ (w - 1).
Proof.
  intro H. destruct (half w H) as [E P]. pose proof (wrap_range w x ltac:(lia)) as Rg.
  unfold signed.
  destruct (Z.ltb_spec (wrap w x) (2 ^ (w - 1))); lia.
Qed.
Lemma signed_fits w z : 0 < w -> - 2 ^ (w - 1) <= z < 2 ^ (w - 1) -> signed w z = z.
Proof.
  intros H Rg. destruct (half w H) as [E P]. unfold signed.
  assert (Wz: wrap w z = if z <? 0 then z + 2 ^ w else z).
  { destruct (Z.ltb_spec z 0).
    - replace (wrap w z) with (wrap w (z + 2 ^ w * 1)) by apply wrap_multiple.
      rewrite wrap_small; lia.
    - apply wrap_small. lia. }
  rewrite Wz. destruct (Z.ltb_spec z 0).
  - destruct (Z.ltb_spec (z + 2 ^ w) (2 ^ (w - 1))); lia.
  - destruct (Z.ltb_spec z (2 ^ (w - 1))); lia.
Qed.
Lemma signed_signed w x : 0 < w -> signed w (signed w x) = signed w x.
Proof. intro H. apply signed_fits; auto. now apply signed_range. Qed.
Lemma signed_narrow v w x : 0 <= v <= w -> signed v (wrap w x) = signed v x.
Proof. intro H. unfold signed. now rewrite wrap_narrow. Qed.
Lemma pow_mono v w : 0 <= v <= w -> 2 ^ v <= 2 ^ w.
Proof. intro. apply Z.pow_le_mono_r; lia. Qed.
Lemma signed_wider v w x : 0 < v <= w -> signed w (signed v x) = signed v x.
Proof.
  intro H. apply signed_fits; [lia|]. pose proof (signed_range v x ltac:(lia)).
  pose proof (pow_mono (v - 1) (w - 1) ltac:(lia)). lia.
Qed.
Lemma signed_of_wrap w x : signed w (wrap w x) = signed w x.
Proof. unfold signed. now rewrite wrap_wrap. Qed.
Lemma signed_0 w : 0 < w -> signed w 0 = 0.
Proof. intro H. destruct (half w H). apply signed_fits; lia. Qed.
Lemma signed_1 w : 1 < w -> signed w 1 = 1.
Proof.
  intro H. apply signed_fits; [lia|]. pose proof (pow_mono 1 (w - 1) ltac:(lia)). lia.
Qed.
Lemma fits_not_overflow w z : 0 < w -> - 2 ^ (w - 1) <= z < 2 ^ (w - 1) -> overflows w z = false.
Proof. intros. unfold overflows. rewrite signed_fits by auto. now rewrite Z.eqb_refl. Qed.
(** A shift left and back by [k] extends the low [w - k] bits. *)
Lemma shifts_extend w k x : 0 <= k < w ->
  Z.shiftr (signed w (wrap w (Z.shiftl x k))) k = signed (w - k) x.
Proof.
  intro H. rewrite signed_of_wrap, Z.shiftl_mul_pow2, Z.shiftr_div_pow2 by lia.
  assert (E: signed w (x * 2 ^ k) = signed (w - k) x * 2 ^ k).
  { assert (Wx: wrap w (x * 2 ^ k) = wrap (w - k) x * 2 ^ k).
    { unfold wrap. replace (2 ^ w) with (2 ^ (w - k) * 2 ^ k)
        by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
      apply Z.mul_mod_distr_r; apply Z.pow_nonzero; lia. }
    unfold signed. rewrite Wx. pose proof (pow_gt k ltac:(lia)) as P.
    replace (2 ^ w) with (2 ^ (w - k) * 2 ^ k) by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
    replace (2 ^ (w - 1)) with (2 ^ (w - k - 1) * 2 ^ k)
      by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
    destruct (Z.ltb_spec (wrap (w - k) x) (2 ^ (w - k - 1)));
      destruct (Z.ltb_spec (wrap (w - k) x * 2 ^ k) (2 ^ (w - k - 1) * 2 ^ k)); nia. }
  rewrite E. apply Z.div_mul. apply Z.pow_nonzero; lia.
Qed.

(** ** Masks *)
Lemma mask_and m m' z : within_mask m z -> within_mask m' z -> within_mask (Z.land m m') z.
Proof. unfold within_mask. intros H H'. now rewrite Z.land_assoc, H. Qed.
Lemma mask_all z : within_mask (-1) z.
Proof. apply Z.land_m1_r. Qed.
Lemma mask_width w z : 0 <= w -> 0 <= z < 2 ^ w -> within_mask (Z.ones w) z.
Proof. apply small_mask. Qed.
Lemma mask_land m m' x y : within_mask m x -> within_mask m' y ->
  within_mask (Z.land m m') (Z.land x y).
Proof.
  unfold within_mask. intros <- <-. apply Z.bits_inj'. intros n Hn. rewrite !Z.land_spec. btauto.
Qed.
Lemma mask_lor m m' x y : within_mask m x -> within_mask m' y ->
  within_mask (Z.lor m m') (Z.lor x y).
Proof.
  unfold within_mask. intros <- <-. apply Z.bits_inj'. intros n Hn.
  rewrite !Z.land_spec, !Z.lor_spec, !Z.land_spec. btauto.
Qed.
Lemma mask_lxor m m' x y : within_mask m x -> within_mask m' y ->
  within_mask (Z.lor m m') (Z.lxor x y).
Proof.
  unfold within_mask. intros <- <-. apply Z.bits_inj'. intros n Hn.
  rewrite !Z.land_spec, !Z.lxor_spec, !Z.lor_spec, !Z.land_spec. btauto.
Qed.
Lemma mask_either m m' x : within_mask m x \/ within_mask m' x -> within_mask (Z.lor m m') x.
Proof.
  unfold within_mask. intros [<-|<-]; apply Z.bits_inj'; intros n Hn;
    rewrite !Z.land_spec, !Z.lor_spec; btauto.
Qed.
Lemma mask_wrap m w x : 0 <= w -> within_mask m x -> within_mask m (wrap w x).
Proof. unfold within_mask. intros Hw H. now rewrite <- wrap_land, H. Qed.
Lemma mask_shiftl m x n : within_mask m x -> within_mask (Z.shiftl m n) (Z.shiftl x n).
Proof. unfold within_mask. intros H. now rewrite <- Z.shiftl_land, H. Qed.
Lemma mask_shiftr m x n : within_mask m x -> within_mask (Z.shiftr m n) (Z.shiftr x n).
Proof. unfold within_mask. intros H. now rewrite <- Z.shiftr_land, H. Qed.
Lemma mask_bit b : within_mask 1 (bit b).
Proof. now destruct b. Qed.
(** What follows from a mask that meets a condition. *)
Lemma mask_apart m z c : within_mask m z -> Z.land m c = 0 -> Z.land z c = 0.
Proof. unfold within_mask. intros <- H. now rewrite <- Z.land_assoc, H, Z.land_0_r. Qed.
Lemma mask_covered m z c : within_mask m z -> Z.ldiff m c = 0 -> Z.land z c = z.
Proof.
  unfold within_mask. intros H E. apply Z.bits_inj'. intros n Hn.
  assert (Q: Z.testbit (Z.ldiff m c) n = false) by (rewrite E; apply Z.bits_0).
  assert (P: Z.testbit (Z.land z m) n = Z.testbit z n) by now rewrite H.
  rewrite Z.ldiff_spec in Q. rewrite Z.land_spec in P |- *.
  destruct (Z.testbit z n), (Z.testbit m n), (Z.testbit c n); auto; discriminate.
Qed.
Lemma ldiff_covered z c : Z.ldiff z c = 0 -> Z.land z c = z.
Proof. apply mask_covered. apply Z.land_diag. Qed.
Lemma mask_bool m z : within_mask m z -> Z.ldiff m 1 = 0 -> z = 0 \/ z = 1.
Proof.
  intros H E. pose proof (mask_covered _ _ _ H E) as Q. change 1 with (Z.ones 1) in Q.
  rewrite Z.land_ones in Q by lia. pose proof (Z.mod_pos_bound z (2 ^ 1) ltac:(lia)). lia.
Qed.
Lemma mask_below m z n : within_mask m z -> Z.shiftr m n = 0 -> Z.shiftr z n = 0.
Proof. unfold within_mask. intros <- H. now rewrite Z.shiftr_land, H, Z.land_0_r. Qed.
