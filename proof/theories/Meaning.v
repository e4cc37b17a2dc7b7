(** What Osier's operations mean, and [osier_faithful]: the part that the judge runs agrees. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Places Integers Bytes Traps Operations.
Local Open Scope Z_scope.

(** Contents: the bits of a number, a float or a reference, or the state that operations read. *)
Inductive value := VBits (z : Z) | VMem (m : map_).
Definition number (v : value) : Z := match v with VBits z => z | VMem _ => 0 end.
Definition contents (v : value) : map_ := match v with VBits _ => [] | VMem m => m end.
Definition has_type (t : nat) (v : value) : Prop :=
  if Nat.eqb t memory_type then exists m, v = VMem m
  else exists z, v = VBits z /\ 0 <= z < 2 ^ width_of t.
(** Any contents, made contents of a type. *)
Definition coerce (t : nat) (v : value) : value :=
  if Nat.eqb t memory_type then VMem (contents v) else VBits (wrap (width_of t) (number v)).
Fixpoint coerce_all (l : list nat) (vs : list value) : list value :=
  match l with
  | [] => []
  | t :: r => coerce t (hd (VBits 0) vs) :: coerce_all r (tl vs)
  end.

(** What Osier leaves to the machine and to the embedder: arithmetic on floats, calls and effects,
    the words of references. Each is a function of its operands, and of the world for effects. *)
Record machine (W : Type) := {
  float : fcode -> list Z -> Z;
  float_traps : fcode -> Z -> bool;                 (* a conversion to an integer *)
  pure : nat -> list value -> Z;                    (* calls of pure functions *)
  reading : nat -> list value -> Z;                 (* calls that read: memory is an operand *)
  words : bool -> Z -> Z -> Z;                      (* a reference and the layout to a word, or a
                                                       word and the layout to a reference *)
  act : nat -> list value -> W -> W * list value;   (* calls and other effects *)
  pages : W -> nat -> Z;                            (* the size of a memory *)
  entries : W -> nat -> Z;                          (* the size of a table *)
  owned : W -> nat -> Z -> bool                     (* the bytes of a host memory *)
}.
Arguments float {W}. Arguments float_traps {W}. Arguments pure {W}. Arguments reading {W}.
Arguments words {W}. Arguments act {W}. Arguments pages {W}. Arguments entries {W}.
Arguments owned {W}.
(** The judge's folding of floats agrees with the machine's arithmetic. *)
Definition FloatsFold {W} (run : fcode -> list Z -> option Z) (X : machine W) : Prop :=
  forall f xs z, run f xs = Some z -> float X f xs = z.
(** Memories and tables never shrink, and bytes of a host memory stay. *)
Record SizesGrow {W} (X : machine W) : Prop := {
  pages_grow : forall f vs w m, pages X w m <= pages X (fst (act X f vs w)) m;
  entries_grow : forall f vs w n, entries X w n <= entries X (fst (act X f vs w)) n;
  owned_stays : forall f vs w m a, owned X w m a = true -> owned X (fst (act X f vs w)) m a = true
}.

(** In every world, a memory has the pages that its declaration gives at least. Worlds are those of a
    run: a memory starts with these pages, and never shrinks ([raised_right]). *)
Definition SizesLeast {W} (least : nat -> Z) (X : machine W) : Prop :=
  forall w m, least m <= pages X w m.

Section Meaning.
Context {W : Type} (X : machine W).

(** ** Accesses *)
Definition byte_at (a : address) (x : Z) (k : nat) : loc :=
  let '(Addr m off _) := a in LByte (2 * m)%nat ((x + off + Z.of_nat k) mod 2 ^ address_bits a).
Definition load (a : address) (n : nat) (x : Z) (m : map_) : Z :=
  from_bytes n (fun k => wrap 8 (find (byte_at a x k) m)).
Definition store (a : address) (n : nat) (x v : Z) (m : map_) : map_ :=
  write_bytes n (byte_at a x) v (clean m).
(** The first operand of an access, the one before the memory, and the memory. *)
Definition first_of (vs : list value) : Z := number (hd (VBits 0) vs).
Definition stored_of (vs : list value) : Z := number (last (removelast vs) (VBits 0)).
Definition memory_of (vs : list value) : map_ := contents (last vs (VBits 0)).

(** ** The meaning of an operation, for all operands

    An operation that traps has some result here. An address wraps, and bytes beyond the size of a
    memory exist. [halts] says when a run ends instead. *)
Definition raw (o : code) (vs : list value) : value :=
  match o with
  | Float f => VBits (float X f (map number vs))
  | Load _ n s a =>
    let z := load a n (first_of vs) (memory_of vs) in
    VBits (if s then signed (8 * Z.of_nat n) z else z)
  | Store _ n a => VMem (store a n (first_of vs) (stored_of vs) (memory_of vs))
  | MemorySize m => VBits (find (LCell (size_cell m)) (memory_of vs))
  | TableSize n => VBits (find (LCell (entries_cell n)) (memory_of vs))
  | TableGet _ n => VBits (find (LByte (2 * n + 1)%nat (first_of vs)) (memory_of vs))
  | GlobalGet _ g => VBits (find (LCell (global_cell g)) (memory_of vs))
  | GlobalSet t g =>
    VMem (write (LCell (global_cell g)) (wrap (bits t) (stored_of vs)) (clean (memory_of vs)))
  | RefBits | RefOf =>
    match vs with
    | [r; m] => VBits (words X (code_eqb o RefBits) (number r)
                             (find (LCell layout_cell) (contents m)))
    | _ => VBits 0
    end
  | CallPure _ f => VBits (pure X f vs)
  | CallReads _ f => VBits (reading X f vs)
  | _ => VBits (match exact o (map number vs) with Some z => z | None => 0 end)
  end.
Definition operate (o : code) (vs : list value) : value := coerce (result_type o) (raw o vs).
Definition perform (o : code) (vs : list value) (w : W) : W * list value :=
  match o with
  | Effect f l => (fst (act X f vs w), coerce_all l (snd (act X f vs w)))
  | _ => (w, [operate o vs])
  end.
Definition osier_sem : Sem Z code value W := {|
  typed := has_type;
  dflt := fun t => coerce t (VBits 0);
  val := VBits;
  opsem := operate;
  effsem := perform;
  choose := fun o vs => picked o (map number vs);
  num := number;
  norm := fun w z => VBits (wrap w z);
  look := fun v l => VBits (find l (contents v))
|}.
(** Whether an operation traps on these operands in this world. *)
Definition out_of_bounds (a : address) (n : nat) (x : Z) (w : W) : bool :=
  let '(Addr m off h) := a in
  if h then negb (forallb (fun k => owned X w m (x + off + Z.of_nat k)) (seq 0 n))
  else pages X w m * 65536 <? x + off + Z.of_nat n.
Definition halts (o : code) (vs : list value) (w : W) : bool :=
  match o with
  | Load _ n _ a | Store _ n a => out_of_bounds a n (first_of vs) w
  | TableGet _ n => entries X w n <=? first_of vs
  | Binary b t =>
    divides b && division_traps b (bits t) (number (nth 0 vs (VBits 0)))
      (number (nth 1 vs (VBits 0)))
  | Float (FCode ToSint s t as f) | Float (FCode ToUint s t as f) =>
    float_traps X f (first_of vs)
  | _ => false
  end.

(** ** Proofs *)
Lemma coerce_typed t v : has_type t (coerce t v).
Proof.
  unfold has_type, coerce. destruct (Nat.eqb t memory_type); eauto. eexists. split; eauto.
  apply wrap_range. unfold width_of. do 11 (destruct t; try lia).
Qed.
Lemma width_tcode t : width_of (tcode t) = bits t.
Proof. now destruct t. Qed.
Lemma not_memory t : Nat.eqb (tcode t) memory_type = false.
Proof. now destruct t. Qed.
Lemma bits_pos t : 8 <= bits t <= 64.
Proof. destruct t; simpl; lia. Qed.
Lemma number_map l : map number (map VBits l) = l.
Proof. induction l; simpl; congruence. Qed.
Lemma operate_exact o vs z : exact o (map number vs) = Some z ->
  operate o vs = coerce (result_type o) (VBits z).
Proof.
  intro E. destruct o; unfold operate, raw; try (now rewrite E); discriminate.
Qed.
Lemma width_exact o xs z : exact o xs = Some z -> Nat.eqb (result_type o) memory_type = false.
Proof.
  intro H. destruct o; simpl in *; try discriminate; auto using not_memory.
  - destruct (is_test o); auto using not_memory.
  - destruct (is_compare o); auto using not_memory.
Qed.
Lemma memory_last xs m : memory_of (xs ++ [m]) = contents m.
Proof. unfold memory_of. now rewrite last_last. Qed.
Lemma stored_last xs m : stored_of (xs ++ [m]) = number (last xs (VBits 0)).
Proof. unfold stored_of. now rewrite removelast_last. Qed.
Lemma first_hd xs m : xs <> [] -> first_of (xs ++ [m]) = number (hd m xs).
Proof. unfold first_of. destruct xs; [congruence|auto]. Qed.

(** Bytes of an access are those of its place. *)
Lemma place_bytes a n p : bytes_at a n = Some p ->
  exists m off h, a = Addr m off h /\ p = Bytes (2 * m)%nat off (Z.of_nat n) (address_bits a) /\
  0 <= off /\ 0 < Z.of_nat n <= 8 /\ off + Z.of_nat n <= 2 ^ address_bits a.
Proof.
  destruct a as [m off h]. unfold bytes_at.
  destruct ((0 <=? off) && _ && _ && _) eqn:G; [|discriminate]. intro H. inversion H; subst.
  repeat (apply andb_true_iff in G; destruct G as [G ?]). rewrite ?Z.leb_le, ?Z.ltb_lt in *.
  exists m, off, h. repeat split; auto.
Qed.
Lemma within_byte a n p x l : bytes_at a n = Some p ->
  within x p l <-> exists k, (k < n)%nat /\ l = byte_at a x k.
Proof.
  intro H. destruct (place_bytes _ _ _ H) as [m [off [h [-> [-> _]]]]]. simpl.
  destruct l as [m' y|c]; split.
  - intros [-> [k [Hk ->]]]. exists (Z.to_nat k). split; [lia|]. now rewrite Z2Nat.id by lia.
  - intros [k [Hk E]]. inversion E; subst. split; auto. exists (Z.of_nat k). split; [lia|auto].
  - intros [].
  - intros [k [_ E]]. discriminate.
Qed.
Lemma address_width a : 32 <= address_bits a <= 64.
Proof. destruct a as [m off []]; simpl; lia. Qed.
Lemma pow_big a : 16 < 2 ^ address_bits a.
Proof.
  apply Z.lt_le_trans with (2 ^ 32); [reflexivity|]. apply Z.pow_le_mono_r; [lia|].
  apply address_width.
Qed.
Lemma mod_near N x y : 16 < N -> -16 < x - y < 16 -> x mod N = y mod N -> x = y.
Proof.
  intros HN Hxy E. destruct (mod_eq N x y ltac:(lia) E) as [q Hq]. assert (q = 0) by nia.
  subst. lia.
Qed.
Lemma byte_inj a x i j : (i < 8)%nat -> (j < 8)%nat -> byte_at a x i = byte_at a x j -> i = j.
Proof.
  destruct a as [m off h]. unfold byte_at. intros Hi Hj E. inversion E as [E'].
  apply mod_near in E'; [lia|exact (pow_big (Addr m off h))|lia].
Qed.
(** Ranges with the same bytes begin at the same byte. *)
Lemma same_start m off off' h x x' n : (0 < n <= 8)%nat ->
  (forall l, (exists k, (k < n)%nat /\ l = byte_at (Addr m off h) x k) <->
             (exists k, (k < n)%nat /\ l = byte_at (Addr m off' h) x' k)) ->
  forall k, byte_at (Addr m off h) x k = byte_at (Addr m off' h) x' k.
Proof.
  intros Hn E. set (N := 2 ^ address_bits (Addr m off h)).
  assert (HN: 16 < N) by apply pow_big.
  destruct (proj1 (E (byte_at (Addr m off h) x 0))) as [i [Hi Ei]];
    [exists 0%nat; split; [lia|auto]|].
  destruct (proj2 (E (byte_at (Addr m off' h) x' 0))) as [j [Hj Ej]];
    [exists 0%nat; split; [lia|auto]|].
  inversion Ei as [Ei']. inversion Ej as [Ej']. clear Ei Ej.
  change (2 ^ (if h then 64 else 32)) with N in *.
  destruct (mod_eq N _ _ ltac:(lia) Ei') as [q Hq].
  destruct (mod_eq N _ _ ltac:(lia) Ej') as [r Hr].
  assert (i = 0%nat).
  { assert (Z.of_nat i + Z.of_nat j = - N * (q + r)) by lia. assert (q + r = 0) by nia. nia. }
  subst i. intro k. simpl. f_equal. change (2 ^ (if h then 64 else 32)) with N.
  apply (eq_mod _ _ _ q); lia.
Qed.
End Meaning.
