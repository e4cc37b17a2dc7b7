(** Integers as numbers: a value of [w] bits is a number from 0 up to 2^w - 1. *)
From Coq Require Import List ZArith Lia Bool.
Import ListNotations.
Local Open Scope Z_scope.

(** The low [w] bits of a number, and the same bits as a two's complement number. *)
Definition wrap (w x : Z) : Z := x mod 2 ^ w.
Definition signed (w x : Z) : Z :=
  let y := wrap w x in if y <? 2 ^ (w - 1) then y else y - 2 ^ w.
Definition fits (w x : Z) : bool := (0 <=? x) && (x <? 2 ^ w).
Definition bit (b : bool) : Z := if b then 1 else 0.

Inductive unary := UClz | UCtz | UPopcnt | UBswap | USext8 | USext16 | USext32 | UEqz.
Inductive binary :=
| BAdd | BSub | BMul | BSdiv | BUdiv | BSrem | BUrem | BAnd | BOr | BXor
| BShl | BSshr | BUshr | BRotl | BRotr
| BEq | BNe | BSlt | BSle | BSgt | BSge | BUlt | BUle | BUgt | BUge
| BSaddOverflows | BSsubOverflows | BSmulOverflows.

Fixpoint ones (p : positive) : Z :=
  match p with xH => 1 | xO q => ones q | xI q => 1 + ones q end.
Definition popcnt (x : Z) : Z := match x with Zpos p => ones p | _ => 0 end.
(** The number of bits up to the highest one, and the number of zeros below the lowest one. *)
Definition length_of (x : Z) : Z := match x with Zpos _ => Z.log2 x + 1 | _ => 0 end.
Fixpoint low_zeros (p : positive) : Z := match p with xO q => 1 + low_zeros q | _ => 0 end.
Definition trailing (w x : Z) : Z := match x with Zpos p => low_zeros p | _ => w end.
(** The low [n] bytes in reverse order. *)
Fixpoint swapped (n : nat) (x : Z) : Z :=
  match n with
  | O => 0
  | S m => Z.lor (Z.shiftl (wrap 8 x) (8 * Z.of_nat m)) (swapped m (Z.shiftr x 8))
  end.

(** The result before it is cut to the width, for an operand of [w] bits. *)
Definition unary_of (o : unary) (w x : Z) : Z :=
  match o with
  | UClz => w - length_of (wrap w x)
  | UCtz => trailing w (wrap w x)
  | UPopcnt => popcnt (wrap w x)
  | UBswap => swapped (Z.to_nat (w / 8)) (wrap w x)
  | USext8 => signed 8 x
  | USext16 => signed 16 x
  | USext32 => signed 32 x
  | UEqz => bit (x =? 0)
  end.
(** Whether a number is none that [w] bits of two's complement hold. *)
Definition overflows (w x : Z) : bool := negb (signed w x =? x).
Definition binary_of (o : binary) (w x y : Z) : Z :=
  let n := y mod w in
  match o with
  | BAdd => x + y
  | BSub => x - y
  | BMul => x * y
  | BSdiv => Z.quot (signed w x) (signed w y)
  | BUdiv => x / y
  | BSrem => Z.rem (signed w x) (signed w y)
  | BUrem => x mod y
  | BAnd => Z.land x y
  | BOr => Z.lor x y
  | BXor => Z.lxor x y
  | BShl => Z.shiftl x n
  | BSshr => Z.shiftr (signed w x) n
  | BUshr => Z.shiftr x n
  | BRotl => Z.lor (Z.shiftl x n) (Z.shiftr x (w - n))
  | BRotr => Z.lor (Z.shiftr x n) (Z.shiftl x (w - n))
  | BEq => bit (x =? y)
  | BNe => bit (negb (x =? y))
  | BSlt => bit (signed w x <? signed w y)
  | BSle => bit (signed w x <=? signed w y)
  | BSgt => bit (signed w y <? signed w x)
  | BSge => bit (signed w y <=? signed w x)
  | BUlt => bit (x <? y)
  | BUle => bit (x <=? y)
  | BUgt => bit (y <? x)
  | BUge => bit (y <=? x)
  | BSaddOverflows => bit (overflows w (signed w x + signed w y))
  | BSsubOverflows => bit (overflows w (signed w x - signed w y))
  | BSmulOverflows => bit (overflows w (signed w x * signed w y))
  end.
(** Comparisons give 0 or 1, as an integer of 32 bits. The others give a value of their type. *)
Definition is_test (o : unary) : bool := match o with UEqz => true | _ => false end.
Definition is_compare (o : binary) : bool :=
  match o with
  | BEq | BNe | BSlt | BSle | BSgt | BSge | BUlt | BUle | BUgt | BUge
  | BSaddOverflows | BSsubOverflows | BSmulOverflows => true
  | _ => false
  end.
Definition commutes (o : binary) : bool :=
  match o with
  | BAdd | BMul | BAnd | BOr | BXor | BEq | BNe | BSaddOverflows | BSmulOverflows => true
  | _ => false
  end.
Definition divides (o : binary) : bool :=
  match o with BSdiv | BUdiv | BSrem | BUrem => true | _ => false end.
(** Divisors that trap for some dividend, or for this one. *)
Definition safe_divisor (o : binary) (w y : Z) : bool :=
  negb (y =? 0) && match o with BSdiv => negb (signed w y =? -1) | _ => true end.
Definition division_traps (o : binary) (w x y : Z) : bool :=
  (y =? 0) ||
  match o with BSdiv => (signed w y =? -1) && (signed w x =? - 2 ^ (w - 1)) | _ => false end.

Lemma binary_comm o w x y : commutes o = true -> binary_of o w x y = binary_of o w y x.
Proof.
  destruct o; try discriminate; intros _; simpl; auto using Z.add_comm, Z.mul_comm, Z.land_comm,
    Z.lor_comm, Z.lxor_comm; try now rewrite Z.eqb_sym.
  - now rewrite Z.add_comm.
  - now rewrite Z.mul_comm.
Qed.
Lemma safe_divides o w x y : safe_divisor o w y = true -> division_traps o w x y = false.
Proof.
  unfold safe_divisor, division_traps. intro H. apply andb_true_iff in H. destruct H as [H1 H2].
  apply negb_true_iff in H1. rewrite H1. simpl. destruct o; auto. apply negb_true_iff in H2.
  now rewrite H2.
Qed.
Lemma pow_gt w : 0 <= w -> 0 < 2 ^ w.
Proof. intro. apply Z.pow_pos_nonneg; lia. Qed.
Lemma wrap_range w x : 0 <= w -> 0 <= wrap w x < 2 ^ w.
Proof. intro H. apply Z.mod_pos_bound. now apply pow_gt. Qed.
Lemma wrap_small w x : 0 <= x < 2 ^ w -> wrap w x = x.
Proof. apply Z.mod_small. Qed.
Lemma fits_ok w x : fits w x = true -> 0 <= x < 2 ^ w.
Proof.
  unfold fits. intro H. apply andb_true_iff in H. destruct H as [H1 H2].
  apply Z.leb_le in H1. apply Z.ltb_lt in H2. lia.
Qed.

(** ** Floating point: the operations that look at bits alone

    A float of [w] bits is a sign, and a magnitude below 2^(w - 1). A magnitude above that of the
    infinity is a NaN. The order of other floats is that of signed magnitudes. *)
Definition infinity (w : Z) : Z :=
  if w =? 32 then 0x7f800000 else 0x7ff0000000000000.
Definition magnitude (w x : Z) : Z := wrap (w - 1) x.
Definition is_negative (w x : Z) : bool := 2 ^ (w - 1) <=? wrap w x.
Definition is_nan (w x : Z) : bool := infinity w <? magnitude w x.
Definition rank (w x : Z) : Z := if is_negative w x then - magnitude w x else magnitude w x.
Inductive fcompare := FEq | FNe | FLt | FLe | FGt | FGe.
Definition fcompare_of (o : fcompare) (w x y : Z) : Z :=
  let ordered := negb (is_nan w x || is_nan w y) in
  bit match o with
      | FEq => ordered && (rank w x =? rank w y)
      | FNe => negb (ordered && (rank w x =? rank w y))
      | FLt => ordered && (rank w x <? rank w y)
      | FLe => ordered && (rank w x <=? rank w y)
      | FGt => ordered && (rank w y <? rank w x)
      | FGe => ordered && (rank w y <=? rank w x)
      end.
Definition fabs_of (w x : Z) : Z := magnitude w x.
Definition fneg_of (w x : Z) : Z := if is_negative w x then magnitude w x
  else magnitude w x + 2 ^ (w - 1).
Definition fcopysign_of (w x y : Z) : Z :=
  if is_negative w y then magnitude w x + 2 ^ (w - 1) else magnitude w x.
Lemma fcompare_comm o w x y : (o = FEq \/ o = FNe) -> fcompare_of o w x y = fcompare_of o w y x.
Proof.
  intros [->| ->]; unfold fcompare_of; now rewrite (orb_comm (is_nan w x)),
    (Z.eqb_sym (rank w x)).
Qed.
