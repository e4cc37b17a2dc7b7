(** Memories as finite maps from locations to numbers, with one form for each contents; and the
    bytes of a number, lowest first. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Integers.
Local Open Scope Z_scope.

(** ** Locations in an order *)
Definition loc_eqb (a b : loc) : bool :=
  match a, b with
  | LByte m x, LByte n y => Nat.eqb m n && (x =? y)
  | LCell m, LCell n => Nat.eqb m n
  | _, _ => false
  end.
Definition before (a b : loc) : bool :=
  match a, b with
  | LByte m x, LByte n y => Nat.ltb m n || (Nat.eqb m n && (x <? y))
  | LCell m, LCell n => Nat.ltb m n
  | LCell _, LByte _ _ => true
  | LByte _ _, LCell _ => false
  end.
Ltac order := repeat match goal with
  | H : _ && _ = true |- _ => apply andb_true_iff in H; destruct H
  | H : _ || _ = true |- _ => apply orb_true_iff in H; destruct H
  | H : Nat.eqb _ _ = true |- _ => apply Nat.eqb_eq in H
  | H : Nat.ltb _ _ = true |- _ => apply Nat.ltb_lt in H
  | H : (_ =? _) = true |- _ => apply Z.eqb_eq in H
  | H : (_ <? _) = true |- _ => apply Z.ltb_lt in H
  end; subst.
Lemma loc_eqb_ok a b : loc_eqb a b = true <-> a = b.
Proof.
  split; [destruct a, b; simpl; intro H; try discriminate; order; auto|].
  intros <-. destruct a; simpl; now rewrite Nat.eqb_refl, ?Z.eqb_refl.
Qed.
Lemma loc_eqb_refl a : loc_eqb a a = true.
Proof. now apply loc_eqb_ok. Qed.
Lemma before_trans a b c : before a b = true -> before b c = true -> before a c = true.
Proof.
  destruct a, b, c; simpl; intros H G; try discriminate; auto; order; try (apply Nat.ltb_lt; lia);
    apply orb_true_iff; try (left; apply Nat.ltb_lt; lia);
    right; rewrite Nat.eqb_refl; apply Z.ltb_lt; lia.
Qed.
Lemma before_irrefl a : before a a = false.
Proof. destruct a; simpl; now rewrite Nat.ltb_irrefl, ?Z.ltb_irrefl, ?andb_false_r. Qed.
Lemma before_total a b : before a b = false -> loc_eqb a b = false -> before b a = true.
Proof.
  destruct a as [m x|m], b as [n y|n]; simpl; intros H G; auto; try discriminate.
  - apply orb_false_iff in H. destruct H as [H1 H2]. apply Nat.ltb_ge in H1.
    destruct (Nat.eq_dec m n) as [<-|N]; [|apply orb_true_iff; left; apply Nat.ltb_lt; lia].
    rewrite Nat.eqb_refl in *. simpl in *. apply Z.ltb_ge in H2. apply Z.eqb_neq in G.
    rewrite Nat.ltb_irrefl. apply Z.ltb_lt. lia.
  - apply Nat.ltb_ge in H. apply Nat.eqb_neq in G. apply Nat.ltb_lt. lia.
Qed.

(** ** Maps: sorted by location, without zeros *)
Definition map_ := list (loc * Z).
Fixpoint find (k : loc) (m : map_) : Z :=
  match m with
  | [] => 0
  | (j, z) :: r => if loc_eqb k j then z else find k r
  end.
Fixpoint write (k : loc) (z : Z) (m : map_) : map_ :=
  match m with
  | [] => if z =? 0 then [] else [(k, z)]
  | (j, y) :: r =>
    if loc_eqb k j then (if z =? 0 then r else (k, z) :: r)
    else if before k j then (if z =? 0 then m else (k, z) :: m)
    else (j, y) :: write k z r
  end.
(** A map in its only form. *)
Fixpoint clean (m : map_) : map_ :=
  match m with [] => [] | (k, z) :: r => write k z (clean r) end.
Definition above (k : loc) (m : map_) : Prop := forall j y, In (j, y) m -> before k j = true.
Fixpoint sorted (m : map_) : Prop :=
  match m with [] => True | (k, z) :: r => z <> 0 /\ above k r /\ sorted r end.

Lemma find_above k m : above k m -> find k m = 0.
Proof.
  induction m as [|[j z] r IH]; simpl; intro A; auto.
  destruct (loc_eqb k j) eqn:E.
  - apply loc_eqb_ok in E. subst. specialize (A j z (or_introl eq_refl)).
    now rewrite before_irrefl in A.
  - apply IH. intros i y H. apply (A i y). now right.
Qed.
Lemma above_less k j m : before k j = true -> above j m -> above k m.
Proof. intros H A i y I. eapply before_trans; eauto. Qed.
Lemma write_in j y k z m : In (j, y) (write k z m) -> j = k \/ In (j, y) m.
Proof.
  induction m as [|[i x] r IH]; simpl.
  - destruct (z =? 0); simpl; [tauto|]. intros [H|[]]. inversion H. auto.
  - destruct (loc_eqb k i); [|destruct (before k i)].
    + destruct (z =? 0); simpl; [auto|]. intros [H|H]; [inversion H; auto|auto].
    + destruct (z =? 0); simpl; [auto|]. intros [H|H]; [inversion H; auto|auto].
    + simpl. intros [H|H]; [auto|]. apply IH in H. tauto.
Qed.
Lemma write_sorted k z m : sorted m -> sorted (write k z m).
Proof.
  induction m as [|[i x] r IH]; simpl; intro S.
  - destruct (z =? 0) eqn:Z0; simpl; auto. apply Z.eqb_neq in Z0. repeat split; auto.
    intros j y [].
  - destruct S as [Nz [A S]]. destruct (loc_eqb k i) eqn:E; [|destruct (before k i) eqn:B].
    + destruct (z =? 0) eqn:Z0; auto. apply loc_eqb_ok in E. subst. apply Z.eqb_neq in Z0.
      simpl. auto.
    + destruct (z =? 0) eqn:Z0; [simpl; auto|]. apply Z.eqb_neq in Z0. simpl. repeat split; auto.
      intros j y [H|H]; [inversion H; subst; auto|]. eapply before_trans; eauto.
    + simpl. repeat split; auto. intros j y H. apply write_in in H.
      destruct H as [->|H]; [now apply before_total|]. eauto.
Qed.
Lemma find_write k z m j : sorted m -> find j (write k z m) = if loc_eqb j k then z else find j m.
Proof.
  induction m as [|[i x] r IH]; simpl; intro S.
  - destruct (z =? 0) eqn:Z0; simpl; auto. apply Z.eqb_eq in Z0. subst.
    now destruct (loc_eqb j k).
  - destruct S as [Nz [A S]]. destruct (loc_eqb k i) eqn:E; [|destruct (before k i) eqn:B].
    + apply loc_eqb_ok in E. subst k. destruct (z =? 0) eqn:Z0; simpl.
      * apply Z.eqb_eq in Z0. subst. destruct (loc_eqb j i) eqn:Ej; auto.
        apply loc_eqb_ok in Ej. subst. now apply find_above.
      * now destruct (loc_eqb j i).
    + destruct (z =? 0) eqn:Z0; simpl; [|now destruct (loc_eqb j k)].
      destruct (loc_eqb j k) eqn:Ej; auto. apply loc_eqb_ok in Ej. subst. rewrite E.
      apply Z.eqb_eq in Z0. subst. apply find_above. eapply above_less; eauto.
    + simpl. rewrite (IH S). destruct (loc_eqb j i) eqn:Ej; auto.
      apply loc_eqb_ok in Ej. subst. destruct (loc_eqb i k) eqn:Ek; auto.
      apply loc_eqb_ok in Ek. subst. now rewrite loc_eqb_refl in E.
Qed.
Lemma clean_sorted m : sorted (clean m).
Proof. induction m as [|[k z] r IH]; simpl; auto. now apply write_sorted. Qed.
Lemma find_clean m k : find k (clean m) = find k m.
Proof.
  induction m as [|[j z] r IH]; simpl; auto. rewrite find_write by apply clean_sorted.
  now rewrite IH.
Qed.
(** Maps in their only form are equal if all their contents are. *)
Theorem sorted_ext m : forall m', sorted m -> sorted m' -> (forall k, find k m = find k m') ->
  m = m'.
Proof.
  induction m as [|[k z] r IH]; intros [|[j y] r'] S S' E; auto.
  - exfalso. specialize (E j). simpl in E. rewrite loc_eqb_refl in E. destruct S'. auto.
  - exfalso. specialize (E k). simpl in E. rewrite loc_eqb_refl in E. destruct S. auto.
  - destruct S as [Nz [A S]]. destruct S' as [Ny [A' S']].
    assert (Kj: k = j).
    { destruct (loc_eqb k j) eqn:Q; [now apply loc_eqb_ok|]. exfalso.
      destruct (before k j) eqn:B.
      - pose proof (E k) as Ek. simpl in Ek. rewrite loc_eqb_refl, Q in Ek.
        rewrite (find_above k r') in Ek; auto. eapply above_less; eauto.
      - pose proof (before_total _ _ B Q) as B'. pose proof (E j) as Ej. simpl in Ej.
        rewrite loc_eqb_refl in Ej. destruct (loc_eqb j k) eqn:Q'.
        + apply loc_eqb_ok in Q'. subst. now rewrite loc_eqb_refl in Q.
        + rewrite (find_above j r) in Ej; [congruence|]. eapply above_less; eauto. }
    subst j. pose proof (E k) as Ek. simpl in Ek. rewrite loc_eqb_refl in Ek. subst y. f_equal.
    apply IH; auto. intro i. pose proof (E i) as Ei. simpl in Ei.
    destruct (loc_eqb i k) eqn:Q; auto. apply loc_eqb_ok in Q. subst.
    now rewrite !find_above.
Qed.

(** ** Bytes of numbers *)
Definition byte_of (v : Z) (k : nat) : Z := (v / 2 ^ (8 * Z.of_nat k)) mod 2 ^ 8.
(** The number whose bytes are [at 0, at 1, ...]. *)
Fixpoint from_bytes (n : nat) (at_ : nat -> Z) : Z :=
  match n with
  | O => 0
  | S k => from_bytes k at_ + at_ k * 2 ^ (8 * Z.of_nat k)
  end.
Lemma from_bytes_ext n f g : (forall k, (k < n)%nat -> f k = g k) ->
  from_bytes n f = from_bytes n g.
Proof. induction n as [|n IH]; simpl; intro H; auto. rewrite IH, H; auto. Qed.
Lemma from_bytes_of v n : from_bytes n (byte_of v) = v mod 2 ^ (8 * Z.of_nat n).
Proof.
  induction n as [|n IH]; cbn [from_bytes]; [now rewrite Z.mod_1_r|]. rewrite IH. unfold byte_of.
  replace (8 * Z.of_nat (S n)) with (8 * Z.of_nat n + 8) by lia.
  rewrite Z.pow_add_r by lia. set (a := 2 ^ (8 * Z.of_nat n)).
  assert (0 < a) by (apply Z.pow_pos_nonneg; lia).
  rewrite Z.rem_mul_r by lia. ring.
Qed.
(** Writes the bytes of a number at the locations [at 0, at 1, ...]. *)
Fixpoint write_bytes (n : nat) (at_ : nat -> loc) (v : Z) (m : map_) : map_ :=
  match n with
  | O => m
  | S k => write (at_ k) (byte_of v k) (write_bytes k at_ v m)
  end.
Lemma write_bytes_sorted n at_ v m : sorted m -> sorted (write_bytes n at_ v m).
Proof. intro S. induction n; simpl; auto using write_sorted. Qed.
Lemma find_outside n at_ v m l : sorted m -> (forall k, (k < n)%nat -> l <> at_ k) ->
  find l (write_bytes n at_ v m) = find l m.
Proof.
  intro S. induction n as [|n IH]; simpl; intro H; auto.
  rewrite find_write by now apply write_bytes_sorted. destruct (loc_eqb l (at_ n)) eqn:E.
  - apply loc_eqb_ok in E. exfalso. apply (H n); auto.
  - apply IH. intros k Hk. apply H. lia.
Qed.
Lemma find_inside n at_ v m m' l : sorted m -> sorted m' -> (exists k, (k < n)%nat /\ l = at_ k) ->
  find l (write_bytes n at_ v m) = find l (write_bytes n at_ v m').
Proof.
  intros S S'. induction n as [|n IH]; intros [k [Hk E]]; [lia|]. simpl.
  rewrite !find_write by now apply write_bytes_sorted. destruct (loc_eqb l (at_ n)) eqn:Q; auto.
  apply IH. exists k. split; auto. destruct (Nat.eq_dec k n) as [->|N]; [|lia].
  subst. now rewrite loc_eqb_refl in Q.
Qed.
Lemma find_written n at_ v m k : sorted m -> (k < n)%nat ->
  (forall i j, (i < n)%nat -> (j < n)%nat -> at_ i = at_ j -> i = j) ->
  find (at_ k) (write_bytes n at_ v m) = byte_of v k.
Proof.
  intros S. induction n as [|n IH]; intros Hk Inj; [lia|]. simpl.
  rewrite find_write by now apply write_bytes_sorted. destruct (loc_eqb (at_ k) (at_ n)) eqn:Q.
  - apply loc_eqb_ok in Q. apply Inj in Q; auto; now subst.
  - apply IH.
    + destruct (Nat.eq_dec k n) as [->|N]; [|lia]. now rewrite loc_eqb_refl in Q.
    + intros i j Hi Hj. apply Inj; lia.
Qed.
