(** The concrete language satisfies the duties of the checker: [osier_faithful] and
    [osier_trap_faithful]. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Places Traps Integers Bytes Operations Meaning.
Local Open Scope Z_scope.

Section Concrete.
Context {W R : Type} (X : machine W) (run : fcode -> list Z -> option Z).
Variable rule_ok : table code R -> R -> nat -> bool.
Notation L := (osier run rule_ok).
Notation M := (osier_sem X).
Notation operate := (operate X).
Hypothesis floats : FloatsFold run X.

Lemma commuting_ok o a b : commuting o = true -> operate o [a; b] = operate o [b; a].
Proof.
  intro H. destruct o; try discriminate; unfold Meaning.operate, raw; simpl; f_equal; f_equal.
  - now apply binary_comm.
  - apply fcompare_comm. destruct o; auto; discriminate.
  - now rewrite Z.eqb_sym.
Qed.
Lemma folded_ok o cs c : folded run o cs = Some c -> operate o (map VBits cs) = VBits c.
Proof.
  intro H. assert (Cut: forall z, exact o cs = Some z -> wrap (width_of (result_type o)) z = c ->
    operate o (map VBits cs) = VBits c).
  { intros z E <-. rewrite (operate_exact X o _ z); [|now rewrite number_map].
    unfold coerce. now rewrite (width_exact _ _ _ E). }
  assert (Gen: option_map (wrap (width_of (result_type o))) (exact o cs) = Some c ->
    operate o (map VBits cs) = VBits c).
  { destruct (exact o cs) as [z|] eqn:E; [|discriminate]. intro Q. injection Q as Q.
    exact (Cut z eq_refl Q). }
  destruct o; try (exact (Gen H)).
  - destruct cs; [|discriminate]. simpl in H. destruct (fits (bits t) z) eqn:Fz; [|discriminate].
    inversion H; subst. apply fits_ok in Fz. apply (Cut c eq_refl). simpl. rewrite width_tcode.
    now apply wrap_small.
  - unfold folded in H. destruct cs as [|x [|y [|]]]; try (exact (Gen H)).
    destruct (divides o && _); [discriminate|exact (Gen H)].
  - simpl in H. destruct f as [f s t].
    destruct (run (FCode f s t) cs) as [z|] eqn:E; [|discriminate].
    destruct (fits (width_of (tcode t)) z) eqn:Fz; [|discriminate]. inversion H; subst.
    apply fits_ok in Fz. unfold Meaning.operate, raw, coerce. simpl. rewrite not_memory, number_map.
    rewrite (floats _ _ _ E). f_equal. now apply wrap_small.
Qed.
Lemma asks_alike_ok b o z x : asks_alike b o z = true ->
  picked b [number (operate o [x; VBits z])] = picked b [number x] /\
  picked b [number (operate o [VBits z; x])] = picked b [number x].
Proof.
  intro H. destruct b; try discriminate.
  destruct o; try discriminate. rename o into b'.
  destruct b'; try discriminate. simpl in H.
  apply Z.eqb_eq in H. subst z.
  assert (N: forall p q, operate (Binary BNe t) [p; q] = VBits (bit (negb (number p =? number q)))).
  { intros p q. unfold Meaning.operate, raw, exact, binary_of. cbn [map].
    now destruct (number p =? number q). }
  rewrite !N. cbn [number]. rewrite (Z.eqb_sym 0). unfold picked.
  destruct (number x =? 0); split; reflexivity.
Qed.
Lemma coerce_all_typed l : forall n vs d, has_type (nth n l no_type) d ->
  has_type (nth n l no_type) (nth n (coerce_all l vs) d).
Proof.
  induction l as [|t l IH]; intros n vs d Hd; simpl in *; [now destruct n|].
  destruct n; [apply coerce_typed|]. now apply IH.
Qed.
Lemma typed_number t x : has_type (type_of_width t) x -> VBits (wrap t (number x)) = x.
Proof.
  unfold has_type, type_of_width.
  assert (Zero: (exists z, x = VBits z /\ 0 <= z < 2 ^ 0) -> VBits (wrap t (number x)) = x).
  { intros [z [-> Hz]]. simpl. replace z with 0 by (simpl in Hz; lia). unfold wrap.
    now rewrite Zmod_0_l. }
  assert (Same: forall w, (exists z, x = VBits z /\ 0 <= z < 2 ^ w) ->
    VBits (wrap w (number x)) = x).
  { intros w [z [-> Hz]]. simpl. now rewrite wrap_small. }
  destruct (Z.eq_dec t 8) as [->|N8]; [exact (Same _)|].
  destruct (Z.eq_dec t 16) as [->|N16]; [exact (Same _)|].
  destruct (Z.eq_dec t 32) as [->|N32]; [exact (Same _)|].
  destruct (Z.eq_dec t 64) as [->|N64]; [exact (Same _)|].
  destruct t as [|p|p]; try exact Zero.
  do 7 (destruct p; try exact Zero; try congruence).
Qed.
Lemma coerce_same t x : has_type t x -> coerce t x = x.
Proof.
  unfold has_type, coerce. destruct (Nat.eqb t memory_type).
  - now intros [m ->].
  - intros [z [-> Hz]]. simpl. now rewrite wrap_small.
Qed.
Lemma operate_write o p vs : written_place o = Some p ->
  operate o vs = VMem (contents (raw X o vs)).
Proof. intro H. destruct o; try discriminate; reflexivity. Qed.
Lemma raw_sorted o p vs : written_place o = Some p -> sorted (contents (raw X o vs)).
Proof.
  intro H. destruct o; try discriminate; simpl.
  - apply write_bytes_sorted, clean_sorted.
  - apply write_sorted, clean_sorted.
Qed.
Lemma read_place_ok o p xs m m' : read_place o = Some p -> addressed p xs ->
  (forall l, within (number (hd m xs)) p l -> look M m l = look M m' l) ->
  operate o (xs ++ [m]) = operate o (xs ++ [m']).
Proof.
  intros Rd Ad E. unfold Meaning.operate. f_equal. simpl in E.
  assert (Cell: forall n, p = Cell n -> find (LCell n) (contents m) = find (LCell n) (contents m')).
  { intros n ->. specialize (E (LCell n) eq_refl). congruence. }
  destruct o; try discriminate; unfold raw; rewrite ?memory_last.
  - inversion Rd; subst p. destruct xs as [|r [|v l]]; simpl; rewrite ?(Cell _ eq_refl); auto;
      now destruct l.
  - inversion Rd; subst p. destruct xs as [|r [|v l]]; simpl; rewrite ?(Cell _ eq_refl); auto;
      now destruct l.
  - assert (Ne: xs <> []).
    { destruct (place_bytes _ _ _ Rd) as [n [off [h [_ [-> _]]]]]. exact Ad. }
    rewrite !first_hd by auto.
    assert (Q: forall x, load a bytes x (contents m) = load a bytes x (contents m') \/
      x <> number (hd m xs)).
    { intro x. destruct (Z.eq_dec x (number (hd m xs))) as [->|]; auto. left. unfold load.
      apply from_bytes_ext. intros k Hk. f_equal.
      assert (I: within (number (hd m xs)) p (byte_at a (number (hd m xs)) k))
        by (apply (within_byte _ _ _ _ _ Rd); eauto).
      apply E in I. congruence. }
    replace (hd m' xs) with (hd m xs) by (destruct xs; [congruence|auto]).
    destruct (Q (number (hd m xs))) as [->|N]; [auto|congruence].
  - inversion Rd; subst p. now rewrite (Cell _ eq_refl).
  - inversion Rd; subst p. now rewrite (Cell _ eq_refl).
Qed.
Lemma written_out o p xs m l : written_place o = Some p -> addressed p xs ->
  ~ within (number (hd m xs)) p l ->
  find l (contents (operate o (xs ++ [m]))) = find l (contents m).
Proof.
  intros Wr Ad N. rewrite (operate_write _ _ _ Wr). simpl.
  destruct o; try discriminate; simpl; rewrite memory_last.
  - assert (Ne: xs <> []).
    { destruct (place_bytes _ _ _ Wr) as [n [off [h [_ [-> _]]]]]. exact Ad. }
    rewrite first_hd by auto. unfold store. rewrite find_outside; auto using clean_sorted.
    + apply find_clean.
    + intros k Hk ->. apply N. apply (within_byte _ _ _ _ _ Wr). eauto.
  - inversion Wr; subst. rewrite find_write by apply clean_sorted.
    destruct (loc_eqb l (LCell (global_cell g))) eqn:E; [|apply find_clean].
    apply loc_eqb_ok in E. subst. exfalso. apply N. reflexivity.
Qed.
Lemma written_in o p xs m m' l : written_place o = Some p -> addressed p xs ->
  within (number (hd m xs)) p l ->
  find l (contents (operate o (xs ++ [m]))) = find l (contents (operate o (xs ++ [m']))).
Proof.
  intros Wr Ad I. rewrite !(operate_write _ _ _ Wr). simpl.
  destruct o; try discriminate; simpl; rewrite ?memory_last, ?stored_last.
  - assert (Ne: xs <> []).
    { destruct (place_bytes _ _ _ Wr) as [n [off [h [_ [-> _]]]]]. exact Ad. }
    rewrite !first_hd by auto.
    replace (hd m' xs) with (hd m xs) by (destruct xs; [congruence|auto]).
    unfold store. apply find_inside; auto using clean_sorted. now apply (within_byte _ _ _ _ _ Wr).
  - inversion Wr; subst. destruct l as [|n]; [contradiction|]. simpl in I. subst n.
    rewrite !find_write by apply clean_sorted. now rewrite loc_eqb_refl.
Qed.
Lemma found_again_ok o o' p p' xs x ys m : found_again o o' = true ->
  written_place o = Some p -> read_place o' = Some p' -> addressed p xs -> addressed p' ys ->
  has_type (result_type o') x ->
  (forall l, within (number (hd x xs)) p l <->
             within (number (hd (operate o (xs ++ [x; m])) ys)) p' l) ->
  operate o' (ys ++ [operate o (xs ++ [x; m])]) = x.
Proof.
  intros Fa Wr Rd Ad Ad' Tx Eq. transitivity (coerce (result_type o') x); [|now apply coerce_same].
  destruct o; try discriminate; destruct o';
    try (simpl in Fa; destruct a; discriminate); try discriminate.
  - rename bytes into n, t0 into t', bytes0 into n', is_signed into s, a0 into a'.
    destruct a as [ma off h], a' as [ma' off' h']. simpl in Fa.
    repeat (apply andb_true_iff in Fa; let Q := fresh "Q" in destruct Fa as [Fa Q]).
    apply ty_eqb_ok in Fa. apply negb_true_iff in Q1. apply Nat.eqb_eq in Q0.
    apply Bool.eqb_prop in Q. unfold whole in Q2, Q3. apply Z.eqb_eq in Q2. apply Z.eqb_eq in Q3.
    subst t' ma' h' s. assert (n' = n) by lia. subst n'.
    assert (Ne: xs <> []) by (destruct (place_bytes _ _ _ Wr) as [? [? [? [_ [-> _]]]]]; exact Ad).
    assert (Ne': ys <> [])
      by (destruct (place_bytes _ _ _ Rd) as [? [? [? [_ [-> _]]]]]; exact Ad').
    destruct (place_bytes _ _ _ Wr) as [? [? [? [_ [_ [_ [Hn _]]]]]]].
    set (w := operate (Store t n (Addr ma off h)) (xs ++ [x; m])) in *.
    assert (Start: forall k, byte_at (Addr ma off h) (number (hd x xs)) k =
      byte_at (Addr ma off' h) (number (hd w ys)) k).
    { apply (same_start _ _ _ _ _ _ n); [lia|]. intro l.
      rewrite <- (within_byte _ _ _ _ _ Wr), <- (within_byte _ _ _ _ _ Rd). apply Eq. }
    simpl in Tx. unfold has_type in Tx. rewrite not_memory, width_tcode in Tx.
    destruct Tx as [z [-> Hz]].
    assert (Ld: load (Addr ma off' h) n (number (hd w ys)) (contents w) = z).
    { transitivity (from_bytes n (byte_of z)).
      2: { rewrite from_bytes_of, Q3. now apply wrap_small. }
      apply from_bytes_ext. intros k Hk. rewrite <- Start. unfold w.
      rewrite (operate_write _ _ _ Wr). cbn [contents raw].
      replace (xs ++ [VBits z; m]) with ((xs ++ [VBits z]) ++ [m]) by (now rewrite <- app_assoc).
      rewrite memory_last, stored_last, last_last, first_hd by (now destruct xs).
      replace (hd m (xs ++ [VBits z])) with (hd (VBits z) xs) by (now destruct xs). unfold store.
      rewrite find_written; auto using clean_sorted.
      - cbn [number]. unfold byte_of. apply wrap_small. apply Z.mod_pos_bound. reflexivity.
      - intros i j Hi Hj. apply byte_inj; lia. }
    clearbody w. unfold Meaning.operate, raw. rewrite memory_last, first_hd by auto.
    now rewrite Ld.
  - rename t0 into t', g0 into g'. simpl in Fa. apply ty_eqb_ok in Fa. subst t'.
    inversion Wr; inversion Rd; subst.
    assert (g' = g).
    { assert (G: within (number (hd x xs)) (Cell (global_cell g)) (LCell (global_cell g)))
        by reflexivity.
      apply Eq in G. simpl in G. unfold global_cell in G. lia. }
    subst g'. unfold Meaning.operate at 1. unfold raw. rewrite memory_last. f_equal.
    rewrite (operate_write _ _ _ Wr). cbn [contents raw].
    replace (xs ++ [x; m]) with ((xs ++ [x]) ++ [m]) by (now rewrite <- app_assoc).
    rewrite memory_last, stored_last, last_last, find_write by apply clean_sorted.
    rewrite loc_eqb_refl. simpl in Tx. unfold has_type in Tx. rewrite not_memory, width_tcode in Tx.
    destruct Tx as [z [-> Hz]]. f_equal. now apply wrap_small.
Qed.
Lemma sum_of_ok o a w : sum_of o = Some (a, w) ->
  0 <= w /\ result_type o = type_of_width w /\
  match a with
  | AAdd => forall x y, operate o [x; y] = VBits (wrap w (number x + number y))
  | ASub => forall x y, operate o [x; y] = VBits (wrap w (number x - number y))
  | AConst => True
  end.
Proof.
  intro H. destruct o; try discriminate; try (destruct o; try discriminate);
    destruct t; try discriminate;
    inversion H; subst; repeat split; auto; try lia.
Qed.

Theorem osier_faithful : Faithful L M.
Proof.
  constructor; simpl.
  - apply code_eqb_ok.
  - apply Z.eqb_eq.
  - apply commuting_ok.
  - apply folded_ok.
  - intros o cs. now rewrite number_map.
  - apply asks_alike_ok.
  - intro t. apply coerce_typed.
  - intros o vs. apply coerce_typed.
  - intros o vs w n d Hd. destruct o; try (destruct n as [|[|n]]; simpl in *; auto;
      apply coerce_typed). simpl in *. now apply coerce_all_typed.
  - reflexivity.
  - apply typed_number.
  - intros w m n E. unfold wrap. now rewrite E.
  - intros w n. unfold wrap. apply Zmod_mod.
  - apply sum_of_ok.
  - apply read_place_ok.
  - intros o p xs m l Wr Ad N. f_equal. now apply (written_out _ p).
  - intros o p xs m m' l Wr Ad I. f_equal. now apply (written_in _ p).
  - intros o o' p p' vs vs' Wr Wr' E.
    rewrite (operate_write _ _ _ Wr), (operate_write _ _ _ Wr') in *.
    f_equal. apply sorted_ext; eauto using raw_sorted. intro k. specialize (E k). simpl in E.
    congruence.
  - apply found_again_ok.
  - intros o p [H|H]; destruct o; try discriminate; simpl in H; try (inversion H; subst; exact I);
      destruct (place_bytes _ _ _ H) as [m' [off [h [-> [-> [Ho [Hn He]]]]]]];
      pose proof (address_width (Addr m' off h)); lia.
Qed.

(** ** Traps *)
Lemma reaches_ok a n a' n' x w : reaches a n a' n' = true ->
  out_of_bounds X a n x w = false -> out_of_bounds X a' n' x w = false.
Proof.
  unfold reaches. destruct (bytes_at a n); [|discriminate].
  destruct (bytes_at a' n'); [|discriminate].
  destruct a as [m off h], a' as [m' off' h']. intro H.
  repeat (apply andb_true_iff in H; let Q := fresh "Q" in destruct H as [H Q]).
  apply Nat.eqb_eq in H. apply Bool.eqb_prop in Q1. subst m' h'. apply Z.leb_le in Q.
  unfold out_of_bounds. destruct h.
  - simpl in Q0. apply Z.leb_le in Q0. rewrite !negb_false_iff, !forallb_forall. intros A k Hk.
    apply in_seq in Hk. specialize (A (Z.to_nat (off' - off) + k)%nat).
    rewrite Nat2Z.inj_add, Z2Nat.id in A by lia.
    replace (x + off + (off' - off + Z.of_nat k)) with (x + off' + Z.of_nat k) in A by lia.
    apply A. apply in_seq. lia.
  - rewrite !Z.ltb_ge. lia.
Qed.
Lemma firstn_first n vs vs' : firstn (S n) vs = firstn (S n) vs' -> first_of vs = first_of vs'.
Proof. unfold first_of. destruct vs, vs'; simpl; congruence. Qed.
Lemma firstn_nth vs vs' k : firstn 3 vs = firstn 3 vs' -> (k < 2)%nat ->
  nth k vs (VBits 0) = nth k vs' (VBits 0).
Proof.
  intros E Hk. destruct vs as [|a [|b [|c vs]]], vs' as [|a' [|b' [|c' vs']]]; simpl in E;
    inversion E; subst; destruct k as [|[|k]]; auto; lia.
Qed.
Lemma same_operands o vs vs' w : firstn 3 vs = firstn 3 vs' -> halts X o vs w = halts X o vs' w.
Proof.
  intro E. unfold halts.
  rewrite (firstn_first 2 _ _ E), (firstn_nth _ _ 0 E), (firstn_nth _ _ 1 E) by lia. reflexivity.
Qed.
Lemma vouches_ok o o' n vs vs' w : vouches_for o o' = Some n -> firstn n vs = firstn n vs' ->
  halts X o vs w = false -> halts X o' vs' w = false.
Proof.
  unfold vouches_for. intros V E Hh.
  assert (Same: (if code_eqb o o' then match o with TableGet _ _ => Some 1%nat | _ => Some 3%nat end
    else None) = Some n -> halts X o' vs' w = false).
  { destruct (code_eqb o o') eqn:Q; [|discriminate]. apply code_eqb_ok in Q. subst o'.
    destruct o; intro S; inversion S; subst n; try (now rewrite <- (same_operands _ vs vs')).
    simpl in *. now rewrite <- (firstn_first 0 _ _ E). }
  destruct (accessed o) as [[a k]|] eqn:Ao; [|exact (Same V)].
  destruct (accessed o') as [[a' k']|] eqn:Ao'; [|exact (Same V)].
  destruct (reaches a k a' k') eqn:Re; [|discriminate]. inversion V; subst n.
  pose proof (firstn_first 0 _ _ E) as Ef.
  assert (halts X o vs w = out_of_bounds X a k (first_of vs) w)
    by (destruct o; inversion Ao; subst; reflexivity).
  assert (halts X o' vs' w = out_of_bounds X a' k' (first_of vs') w)
    by (destruct o'; inversion Ao'; subst; reflexivity).
  rewrite H0, <- Ef. apply (reaches_ok _ _ _ _ _ _ Re). congruence.
Qed.
Lemma halts_access o a n vs w : accessed o = Some (a, n) ->
  halts X o vs w = out_of_bounds X a n (first_of vs) w.
Proof. destruct o; intro H; inversion H; subst; reflexivity. Qed.
Lemma known_first ks vs c : known VBits (Some c :: ks) vs -> first_of vs = c.
Proof. intro K. inversion K; subst. reflexivity. Qed.
Lemma below_least_ok least a n c w : SizesLeast least X -> below_least least a n c = true ->
  out_of_bounds X a n c w = false.
Proof.
  intros B H. destruct a as [m off h]. unfold below_least in H. apply andb_true_iff in H.
  destruct H as [Nh H]. apply negb_true_iff in Nh. apply Z.leb_le in H. subst h.
  unfold out_of_bounds. apply Z.ltb_ge. specialize (B w m). lia.
Qed.
Lemma vouches_at_ok o o' ks ks' vs vs' w : vouches_at o o' ks ks' = true ->
  known VBits ks vs -> known VBits ks' vs' -> halts X o vs w = false -> halts X o' vs' w = false.
Proof.
  unfold vouches_at. destruct (accessed o) as [[[m off h] n]|] eqn:A; [|discriminate].
  destruct (accessed o') as [[[m' off' h'] n']|] eqn:A'; [|discriminate].
  destruct ks as [|[c|] ks]; try discriminate. destruct ks' as [|[c'|] ks']; try discriminate.
  intros H K K'. rewrite (halts_access _ _ _ _ _ A), (halts_access _ _ _ _ _ A').
  rewrite (known_first _ _ _ K), (known_first _ _ _ K').
  repeat (apply andb_true_iff in H; let Q := fresh "Q" in destruct H as [H Q]).
  apply Nat.eqb_eq in H. apply negb_true_iff in Q0, Q1. apply Z.leb_le in Q. subst m' h h'.
  unfold out_of_bounds. rewrite !Z.ltb_ge. lia.
Qed.
Theorem osier_trap_faithful least : SizesGrow X -> SizesLeast least X ->
  TrapFaithful (osier_traps least) M (halts X).
Proof.
  intros G Bg. constructor; simpl.
  - intros o vs w H. destruct o; try discriminate; simpl in *; auto.
    + now rewrite H.
    + destruct f as [[] s t]; auto; discriminate.
  - intros o ks vs w S K. destruct o; try discriminate; unfold cannot_trap in S.
    + destruct ks as [|k [|[d|] [|]]]; try discriminate.
      apply andb_true_iff in S. destruct S as [_ S].
      inversion K as [|? x1 ? l1 _ K1]; subst. inversion K1 as [|? x2 ? l2 E2 K2]; subst.
      simpl in *. rewrite (safe_divides _ _ _ _ S). now destruct (divides o).
    + destruct ks as [|[c|] ks]; try discriminate. simpl. rewrite (known_first _ _ _ K).
      eapply below_least_ok; eauto.
    + destruct ks as [|[c|] ks]; try discriminate. simpl. rewrite (known_first _ _ _ K).
      eapply below_least_ok; eauto.
  - apply vouches_ok.
  - apply vouches_at_ok.
  - intros o vs e us w H. destruct e; auto. simpl.
    assert (B: forall a n x, out_of_bounds X a n x w = false ->
      out_of_bounds X a n x (fst (act X name us w)) = false).
    { intros [m off h] n x. unfold out_of_bounds. destruct h.
      - rewrite !negb_false_iff, !forallb_forall. intros A k Hk. apply (owned_stays _ G). auto.
      - rewrite !Z.ltb_ge. pose proof (pages_grow _ G name us w m). lia. }
    destruct o; simpl in *; auto. rewrite Z.leb_gt in *.
    pose proof (entries_grow _ G name us w n). lia.
Qed.
End Concrete.
