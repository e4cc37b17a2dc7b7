(** Boolean tests on lists and ranges, with the facts that their results show. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.

(** Rewrites every conjunction of booleans in the context into a conjunction of facts. *)
Ltac bools := repeat
  match goal with
  | H : _ && _ = true |- _ => apply andb_true_iff in H; destruct H
  | H : (_ =? _) = true |- _ => apply Nat.eqb_eq in H
  | H : (_ <=? _) = true |- _ => apply Nat.leb_le in H
  | H : (_ <? _) = true |- _ => apply Nat.ltb_lt in H
  | H : negb _ = true |- _ => apply negb_true_iff in H
  end.

Definition inb (x : nat) (l : list nat) : bool := existsb (Nat.eqb x) l.
Lemma inb_In x l : inb x l = true <-> In x l.
Proof.
  unfold inb. rewrite existsb_exists. split.
  - intros [y [H E]]. apply Nat.eqb_eq in E. now subst.
  - intro H. exists x. now rewrite Nat.eqb_refl.
Qed.

Fixpoint nodupb (l : list nat) : bool :=
  match l with [] => true | x :: r => negb (inb x r) && nodupb r end.
Lemma nodupb_ok l : nodupb l = true -> NoDup l.
Proof.
  induction l as [|x r IH]; simpl; constructor; bools; auto.
  intro I. apply inb_In in I. congruence.
Qed.

(** Whether all numbers below a bound pass a test. The recursion is a tail call, so that tables of
    any length are walked in constant stack. *)
Fixpoint below (n : nat) (P : nat -> bool) : bool :=
  match n with 0 => true | S m => if P m then below m P else false end.
Lemma below_ok n P : below n P = true -> forall k, k < n -> P k = true.
Proof.
  induction n as [|n IH]; simpl; intros H k L; [lia|]. destruct (P n) eqn:E; [|discriminate].
  destruct (Nat.eq_dec k n) as [->|]; auto. apply IH; auto; lia.
Qed.

(** The first number in [k, k + n) that passes a test. *)
Fixpoint first_in (n k : nat) (P : nat -> bool) : option nat :=
  match n with 0 => None | S m => if P k then Some k else first_in m (S k) P end.
Lemma first_in_some n P : forall k j, first_in n k P = Some j ->
  k <= j /\ j < k + n /\ P j = true /\ forall m, k <= m -> m < j -> P m = false.
Proof.
  induction n as [|n IH]; simpl; intros k j H; [discriminate|]. destruct (P k) eqn:E.
  - inversion H; subst. repeat split; auto; try lia.
  - apply IH in H. destruct H as [A [B [D F]]]. repeat split; auto; try lia.
    intros m Lm Mm. destruct (Nat.eq_dec m k) as [->|]; auto. apply F; lia.
Qed.
Lemma first_in_none n P : forall k m, first_in n k P = None -> k <= m -> m < k + n -> P m = false.
Proof.
  induction n as [|n IH]; simpl; intros k m H A B; [lia|]. destruct (P k) eqn:E; [discriminate|].
  destruct (Nat.eq_dec m k) as [->|]; auto. apply (IH (S k)); auto; lia.
Qed.

Fixpoint nats_eqb (a b : list nat) : bool :=
  match a, b with
  | [], [] => true
  | x :: a', y :: b' => (x =? y) && nats_eqb a' b'
  | _, _ => false
  end.
Lemma nats_eqb_ok a : forall b, nats_eqb a b = true -> a = b.
Proof.
  induction a as [|x a IH]; destruct b as [|y b]; simpl; intro H; try discriminate; auto.
  bools. subst. f_equal. auto.
Qed.

(** Whether the first list is a sublist of the second: linear, and a test for inclusion where both
    ascend. *)
Fixpoint sub (b a : list nat) : bool :=
  match a, b with
  | [], _ => true
  | _, [] => false
  | x :: a', y :: b' => if x =? y then sub b' a' else sub b' a
  end.
Lemma sub_ok b : forall a, sub b a = true -> forall x, In x a -> In x b.
Proof.
  induction b as [|y b IH]; intros [|x a] H z I; simpl in *; try contradiction; try discriminate.
  destruct (x =? y) eqn:E.
  - apply Nat.eqb_eq in E. subst. destruct I as [->|I]; eauto.
  - right. eapply IH; eauto.
Qed.

Fixpoint all2 {A B} (P : A -> B -> bool) (l : list A) (m : list B) : bool :=
  match l, m with
  | [], [] => true
  | x :: l', y :: m' => P x y && all2 P l' m'
  | _, _ => false
  end.
Lemma all2_len {A B} (P : A -> B -> bool) l : forall m, all2 P l m = true -> length l = length m.
Proof.
  induction l as [|x l IH]; intros [|y m] H; simpl in *; try discriminate; auto.
  bools. f_equal. auto.
Qed.

(** Whether the elements of a list pass a test at their index, counted from [k]. *)
Fixpoint indexed {A} (P : nat -> A -> bool) (k : nat) (l : list A) : bool :=
  match l with [] => true | x :: r => P k x && indexed P (S k) r end.
Lemma indexed_ok {A} (P : nat -> A -> bool) l : forall k, indexed P k l = true ->
  forall n x, nth_error l n = Some x -> P (k + n) x = true.
Proof.
  induction l as [|y l IH]; intros k H [|n] x E; simpl in *; try discriminate; bools.
  - inversion E; subst. now rewrite Nat.add_0_r.
  - rewrite Nat.add_succ_r. eapply (IH (S k)); eauto.
Qed.

Lemma in_combine_nth {A B} (l : list A) : forall (m : list B) n x y,
  nth_error l n = Some x -> nth_error m n = Some y -> In (x, y) (combine l m).
Proof.
  induction l as [|a l IH]; intros [|b m] [|n] x y H G; simpl in *; try discriminate.
  - inversion H; inversion G; auto.
  - right. eauto.
Qed.
Lemma find_combine {A} (P : nat -> bool) (g : nat -> A) xs : forall ys,
  find (fun y : nat * A => P (fst y)) (combine xs (map g ys)) =
  option_map (fun y : nat * nat => (fst y, g (snd y)))
             (find (fun y : nat * nat => P (fst y)) (combine xs ys)).
Proof.
  induction xs as [|x xs IH]; intros [|y ys]; simpl; auto. destruct (P x); simpl; auto.
Qed.
Lemma find_nodup {A} xs : forall (ys : list A) x a, NoDup xs -> In (x, a) (combine xs ys) ->
  find (fun y : nat * A => fst y =? x) (combine xs ys) = Some (x, a).
Proof.
  induction xs as [|z xs IH]; intros [|y ys] x a N I; simpl in *; try contradiction.
  inversion N; subst. destruct I as [Q|I].
  - inversion Q; subst. now rewrite Nat.eqb_refl.
  - destruct (z =? x) eqn:Q; auto. apply Nat.eqb_eq in Q. subst z.
    exfalso. apply H1. eapply in_combine_l; eauto.
Qed.
Lemma find_none_in {A} xs : forall (ys : list A) x, ~ In x xs ->
  find (fun y : nat * A => fst y =? x) (combine xs ys) = None.
Proof.
  induction xs as [|z xs IH]; intros [|y ys] x N; simpl in *; auto.
  destruct (z =? x) eqn:Q; [apply Nat.eqb_eq in Q; subst; tauto|]. apply IH. tauto.
Qed.
Lemma in_combine {A} xs : forall (ys : list A) (x : nat), length ys = length xs -> In x xs ->
  exists a, In (x, a) (combine xs ys).
Proof.
  induction xs as [|z xs IH]; intros [|y ys] x L I; simpl in *; try contradiction; try discriminate.
  destruct I as [->|I]; [exists y; auto|]. destruct (IH ys x) as [a Ha]; auto. exists a; auto.
Qed.

(** Sets of numbers as search trees. Nothing is asked of the order: a tree out of order has fewer
    members than it could. *)
Inductive set := Leaf | Node (l : set) (x : nat) (r : set).
Fixpoint mem (x : nat) (t : set) : bool :=
  match t with
  | Leaf => false
  | Node l y r => if x =? y then true else if x <? y then mem x l else mem x r
  end.
Fixpoint for_all (P : nat -> bool) (t : set) : bool :=
  match t with Leaf => true | Node l y r => P y && for_all P l && for_all P r end.
Lemma for_all_ok P t x : for_all P t = true -> mem x t = true -> P x = true.
Proof.
  induction t as [|l IHl y r IHr]; simpl; intros H I; [discriminate|].
  apply andb_true_iff in H. destruct H as [H Hr]. apply andb_true_iff in H. destruct H as [Hy Hl].
  destruct (x =? y) eqn:E; [apply Nat.eqb_eq in E; now subst|]. destruct (x <? y); auto.
Qed.

(** Maps from numbers as search trees, with the same freedom. *)
Inductive map_ (A : Type) := MLeaf | MNode (l : map_ A) (k : nat) (a : A) (r : map_ A).
Arguments MLeaf {A}. Arguments MNode {A}.
Fixpoint get {A} (x : nat) (t : map_ A) : option A :=
  match t with
  | MLeaf => None
  | MNode l k a r => if x =? k then Some a else if x <? k then get x l else get x r
  end.
Fixpoint each {A} (P : nat -> A -> bool) (t : map_ A) : bool :=
  match t with MLeaf => true | MNode l k a r => P k a && each P l && each P r end.
Lemma each_ok {A} (P : nat -> A -> bool) t x a : each P t = true -> get x t = Some a ->
  P x a = true.
Proof.
  induction t as [|l IHl k b r IHr]; simpl; intros H I; [discriminate|].
  apply andb_true_iff in H. destruct H as [H Hr]. apply andb_true_iff in H. destruct H as [Hk Hl].
  destruct (x =? k) eqn:E; [apply Nat.eqb_eq in E; inversion I; now subst|].
  destruct (x <? k); auto.
Qed.
