(** Osier's operations as the checker knows them: types, folding, and places. The judge runs this
    part; Meaning.v says what it means. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Integers Traps.
Local Open Scope Z_scope.

Inductive ty := I8 | I16 | I32 | I64 | F32 | F64 | FuncRef | ExternRef | Ref.
(** The floating-point operations whose meaning is a parameter. *)
Inductive fname :=
| Fadd | Fsub | Fmul | Fdiv | Fmin | Fmax | Fceil | Ffloor | Ftrunc | Fnearest | Fsqrt
| FromSint | FromUint | ToSint | ToUint | ToSintSat | ToUintSat | Promote | Demote.
(** An operation, the type of its operands, and the type of its result. *)
Inductive fcode := FCode (f : fname) (source target : ty).
Inductive fmove := FAbs | FNeg.
(** A memory, and the constant that is added to the operand. Addresses of a host memory have 64
    bits, others 32. *)
Inductive address := Addr (memory : nat) (offset : Z) (host : bool).
(** An operation with its types and its immediate. Names of functions and effects are numbers. *)
Inductive code :=
| Const (t : ty) (z : Z)
| Unary (o : unary) (t : ty)
| Binary (o : binary) (t : ty)
| Extend (is_signed : bool) (source target : ty)
| Wrap (source target : ty)
| Bitcast (source target : ty)
| Select (condition t : ty)
| Move (o : fmove) (t : ty)
| Copysign (t : ty)
| Compare (o : fcompare) (t : ty)
| Float (f : fcode)
| RefIsNull (t : ty)
| RefEq
| RefBits
| RefOf
| Load (t : ty) (bytes : nat) (is_signed : bool) (a : address)
| Store (t : ty) (bytes : nat) (a : address)
| MemorySize (m : nat)
| TableSize (n : nat)
| TableGet (t : ty) (n : nat)
| GlobalGet (t : ty) (g : nat)
| GlobalSet (t : ty) (g : nat)
| CallPure (t : ty) (f : nat)
| CallReads (t : ty) (f : nat)
| Effect (name : nat) (results : list nat)
| Jump
| BrIf
| Switch
| End (name : nat)
| Assume (z : Z) (name : nat).     (* takes its first edge where the operand is [z] *)

Definition ty_dec (a b : ty) : {a = b} + {a <> b}. Proof. decide equality. Defined.
Definition address_dec (a b : address) : {a = b} + {a <> b}.
Proof. decide equality; auto using Bool.bool_dec, Z.eq_dec, Nat.eq_dec. Defined.
Definition unary_dec (a b : unary) : {a = b} + {a <> b}. Proof. decide equality. Defined.
Definition binary_dec (a b : binary) : {a = b} + {a <> b}. Proof. decide equality. Defined.
Definition fcompare_dec (a b : fcompare) : {a = b} + {a <> b}. Proof. decide equality. Defined.
Definition fmove_dec (a b : fmove) : {a = b} + {a <> b}. Proof. decide equality. Defined.
Definition fcode_dec (a b : fcode) : {a = b} + {a <> b}.
Proof. decide equality; auto using ty_dec. decide equality. Defined.
Definition code_dec (a b : code) : {a = b} + {a <> b}.
Proof.
  decide equality; auto using ty_dec, address_dec, unary_dec, binary_dec, fcompare_dec, fcode_dec,
    Bool.bool_dec, Z.eq_dec, Nat.eq_dec, list_eq_dec, fmove_dec.
Defined.
Definition code_eqb (a b : code) : bool := if code_dec a b then true else false.
Lemma code_eqb_ok a b : code_eqb a b = true -> a = b.
Proof. unfold code_eqb. destruct (code_dec a b); congruence. Qed.
Definition ty_eqb (a b : ty) : bool := if ty_dec a b then true else false.
Lemma ty_eqb_ok a b : ty_eqb a b = true -> a = b.
Proof. unfold ty_eqb. destruct (ty_dec a b); congruence. Qed.

(** ** Types as numbers *)
Definition no_type : nat := 0%nat.
Definition memory_type : nat := 1%nat.
Definition tcode (t : ty) : nat :=
  match t with
  | I8 => 2 | I16 => 3 | I32 => 4 | I64 => 5 | F32 => 6 | F64 => 7 | FuncRef => 8 | ExternRef => 9
  | Ref => 10
  end%nat.
Definition bits (t : ty) : Z :=
  match t with I8 => 8 | I16 => 16 | I32 | F32 => 32 | _ => 64 end.
(** The bits of contents of a type. A number that is no type has 0 alone. *)
Definition width_of (n : nat) : Z :=
  match n with
  | 2%nat => 8 | 3%nat => 16 | 4%nat | 6%nat => 32
  | 5%nat | 7%nat | 8%nat | 9%nat | 10%nat => 64
  | _ => 0
  end.
Definition is_int (t : ty) : bool := match t with I8 | I16 | I32 | I64 => true | _ => false end.
Definition is_float (t : ty) : bool := match t with F32 | F64 => true | _ => false end.
Definition type_of_width (w : Z) : nat :=
  match w with 8 => 2%nat | 16 => 3%nat | 32 => 4%nat | 64 => 5%nat | _ => 0%nat end.
Definition result_type (o : code) : nat :=
  match o with
  | Const t _ | Extend _ _ t | Wrap _ t | Bitcast _ t | Select _ t | Move _ t | Copysign t
  | Float (FCode _ _ t) | Load t _ _ _ | TableGet t _ | GlobalGet t _ | CallPure t _
  | CallReads t _ => tcode t
  | Unary u t => if is_test u then tcode I32 else tcode t
  | Binary b t => if is_compare b then tcode I32 else tcode t
  | Compare _ _ | RefIsNull _ | RefEq | MemorySize _ | TableSize _ => tcode I32
  | RefBits => tcode I64
  | RefOf => tcode Ref
  | Store _ _ _ | GlobalSet _ _ => memory_type
  | Effect _ _ | Jump | BrIf | Switch | Assume _ _ | End _ => no_type
  end.
Definition address_type (a : address) : nat :=
  let '(Addr _ _ h) := a in tcode (if h then I64 else I32).
(** The type of an operation has more bits than these: for an extension within a type, the low bits
    that it extends. *)
Definition low_bits (o : unary) : Z :=
  match o with USext8 => 8 | UBswap | USext16 => 16 | USext32 => 32 | _ => 0 end.
(** Whether an operation takes operands of these types. Memory is the last operand of accesses. *)
Definition takes (o : code) (l : list nat) : bool :=
  match o with
  | Const _ _ => nats_eqb l []
  | Unary u t => is_int t && (low_bits u <? bits t) && nats_eqb l [tcode t]
  | Binary _ t => is_int t && nats_eqb l [tcode t; tcode t]
  | Extend _ s t => is_int s && is_int t && (bits s <? bits t) && nats_eqb l [tcode s]
  | Wrap s t => is_int s && is_int t && (bits t <? bits s) && nats_eqb l [tcode s]
  | Bitcast s t =>
    (bits s =? bits t) && (is_int s && is_float t || is_float s && is_int t) && nats_eqb l [tcode s]
  | Select c t => is_int c && nats_eqb l [tcode c; tcode t; tcode t]
  | Move _ t => is_float t && nats_eqb l [tcode t]
  | Copysign t | Compare _ t => is_float t && nats_eqb l [tcode t; tcode t]
  | Float (FCode f s t) =>
    match f with
    | Fadd | Fsub | Fmul | Fdiv | Fmin | Fmax =>
      is_float t && ty_eqb s t && nats_eqb l [tcode t; tcode t]
    | Fceil | Ffloor | Ftrunc | Fnearest | Fsqrt => is_float t && ty_eqb s t && nats_eqb l [tcode t]
    | FromSint | FromUint => is_int s && (32 <=? bits s) && is_float t && nats_eqb l [tcode s]
    | ToSint | ToUint | ToSintSat | ToUintSat =>
      is_float s && is_int t && (32 <=? bits t) && nats_eqb l [tcode s]
    | Promote => ty_eqb s F32 && ty_eqb t F64 && nats_eqb l [tcode s]
    | Demote => ty_eqb s F64 && ty_eqb t F32 && nats_eqb l [tcode s]
    end
  | RefIsNull t => nats_eqb l [tcode t]
  | RefEq => nats_eqb l [tcode Ref; tcode Ref]
  | RefBits => nats_eqb l [tcode Ref; memory_type]
  | RefOf => nats_eqb l [tcode I64; memory_type]
  | Load _ _ _ a => nats_eqb l [address_type a; memory_type]
  | Store t _ a => nats_eqb l [address_type a; tcode t; memory_type]
  | MemorySize _ | TableSize _ | GlobalGet _ _ => nats_eqb l [memory_type]
  | TableGet _ _ => nats_eqb l [tcode I32; memory_type]
  | GlobalSet t _ => nats_eqb l [tcode t; memory_type]
  | CallPure _ _ | CallReads _ _ => true
  | Effect _ _ | Jump | BrIf | Switch | Assume _ _ | End _ => false
  end.
Definition effect_type (o : code) (n : nat) : nat :=
  match o, n with
  | Effect _ l, _ => nth n l no_type
  | _, O => result_type o
  | _, _ => no_type
  end.

(** ** Folding *)
(** The result of an operation on numbers before it is cut to the type; [None] if the meaning is a
    parameter, or needs more than operands. *)
Definition exact (o : code) (xs : list Z) : option Z :=
  match o, xs with
  | Const _ z, _ => Some z
  | Unary u t, [x] => Some (unary_of u (bits t) x)
  | Binary b t, [x; y] => Some (binary_of b (bits t) x y)
  | Extend true s _, [x] => Some (signed (bits s) x)
  | Extend false s _, [x] => Some (wrap (bits s) x)
  | Wrap _ _, [x] | Bitcast _ _, [x] => Some x
  | Select _ _, [c; x; y] => Some (if c =? 0 then y else x)
  | Move FAbs t, [x] => Some (fabs_of (bits t) x)
  | Move FNeg t, [x] => Some (fneg_of (bits t) x)
  | Copysign t, [x; y] => Some (fcopysign_of (bits t) x y)
  | Compare c t, [x; y] => Some (fcompare_of c (bits t) x y)
  | RefIsNull _, [x] => Some (bit (x =? 0))
  | RefEq, [x; y] => Some (bit (x =? y))
  | _, _ => None
  end.
(** [run] computes with floats, where the result is not a NaN. *)
Definition folded (run : fcode -> list Z -> option Z) (o : code) (xs : list Z) : option Z :=
  match o, xs with
  | Const t z, [] => if fits (bits t) z then Some z else None
  | Const _ _, _ => None
  | Float f, _ =>
    match run f xs with
    | Some z => if fits (width_of (result_type o)) z then Some z else None
    | None => None
    end
  | Binary b t, [x; y] =>
    if divides b && division_traps b (bits t) x y then None
    else option_map (wrap (width_of (result_type o))) (exact o xs)
  | _, _ => option_map (wrap (width_of (result_type o))) (exact o xs)
  end.
(** The edge that a terminator takes. A number above all edges stands for the last. *)
Definition picked (o : code) (xs : list Z) : nat :=
  match o, xs with
  | BrIf, [c] => if c =? 0 then 1%nat else 0%nat
  | Switch, [c] => Z.to_nat (Z.min c 0x3fffffff)
  | Assume z _, [c] => if c =? z then 0%nat else 1%nat
  | _, _ => 0%nat
  end.
Definition asks_alike (b o : code) (z : Z) : bool :=
  match b, o with BrIf, Binary BNe _ => z =? 0 | _, _ => false end.
Definition commuting (o : code) : bool :=
  match o with
  | Binary b _ => commutes b
  | Compare FEq _ | Compare FNe _ | RefEq => true
  | _ => false
  end.

(** ** Places *)
(** The entries of table [n] lie where the bytes of a memory [2 n + 1] would lie. *)
Definition address_bits (a : address) : Z := let '(Addr _ _ h) := a in if h then 64 else 32.
Definition bytes_at (a : address) (len : nat) : option place :=
  let '(Addr m off h) := a in
  let w := address_bits a in let n := Z.of_nat len in
  if (0 <=? off) && (0 <? n) && (n <=? 8) && (off + n <=? 2 ^ w)
  then Some (Bytes (2 * m)%nat off n w) else None.
Definition size_cell (m : nat) : nat := (3 * m)%nat.
Definition global_cell (g : nat) : nat := (3 * g + 1)%nat.
Definition layout_cell : nat := 2%nat.
Definition entries_cell (n : nat) : nat := (3 * n + 5)%nat.
Definition read_place (o : code) : option place :=
  match o with
  | Load _ n _ a => bytes_at a n
  | MemorySize m => Some (Cell (size_cell m))
  | GlobalGet _ g => Some (Cell (global_cell g))
  | RefBits | RefOf => Some (Cell layout_cell)
  | _ => None
  end.
Definition written_place (o : code) : option place :=
  match o with
  | Store _ n a => bytes_at a n
  | GlobalSet _ g => Some (Cell (global_cell g))
  | _ => None
  end.
Definition whole (t : ty) (n : nat) : bool := 8 * Z.of_nat n =? bits t.
Definition found_again (w r : code) : bool :=
  match w, r with
  | Store t n (Addr m _ h), Load t' n' s (Addr m' _ h') =>
    ty_eqb t t' && whole t n && whole t n' && negb s && Nat.eqb m m' && Bool.eqb h h'
  | GlobalSet t _, GlobalGet t' _ => ty_eqb t t'
  | _, _ => false
  end.
Definition sum_of (o : code) : option (arith * Z) :=
  match o with
  | Const t _ => if is_int t then Some (AConst, bits t) else None
  | Binary BAdd t => if is_int t then Some (AAdd, bits t) else None
  | Binary BSub t => if is_int t then Some (ASub, bits t) else None
  | _ => None
  end.
Definition osier {R} (run : fcode -> list Z -> option Z)
  (rule_ok : table code R -> R -> nat -> bool) : Lang Z code R := {|
  op_eqb := code_eqb;
  ceqb := Z.eqb;
  comm := commuting;
  fold := folded run;
  pick := picked;
  asks := asks_alike;
  rty := result_type;
  Terms.signed := takes;
  ety := effect_type;
  arith_of := sum_of;
  int_type := type_of_width;
  zc := fun z => z;
  reads := read_place;
  writes := written_place;
  gives_back := found_again;
  Terms.rule_ok := rule_ok
|}.

(** ** Traps *)
Definition accessed (o : code) : option (address * nat) :=
  match o with Load _ n _ a | Store _ n a => Some (a, n) | _ => None end.
Definition may_trap (o : code) : bool :=
  match o with
  | Load _ _ _ _ | Store _ _ _ | TableGet _ _ => true
  | Binary b _ => divides b
  | Float (FCode ToSint _ _) | Float (FCode ToUint _ _) => true
  | _ => false
  end.
(** Constant operands exclude a trap: a divisor, or an address at which the access ends within the
    pages that its linear memory has in every run. *)
Definition below_least (least : nat -> Z) (a : address) (n : nat) (c : Z) : bool :=
  let '(Addr m off h) := a in negb h && (c + off + Z.of_nat n <=? least m * 65536).
Definition cannot_trap (least : nat -> Z) (o : code) (ks : list (option Z)) : bool :=
  match o, ks with
  | Binary b t, [_; Some d] => divides b && safe_divisor b (bits t) d
  | Load _ n _ a, Some c :: _ => below_least least a n c
  | Store _ n a, Some c :: _ => below_least least a n c
  | _, _ => false
  end.
(** In a linear memory, an access that ends later vouches for one that ends earlier. In a host
    memory, an access vouches for bytes of its own. *)
Definition reaches (a : address) (n : nat) (a' : address) (n' : nat) : bool :=
  match bytes_at a n, bytes_at a' n' with
  | Some _, Some _ =>
    let '(Addr m off h) := a in let '(Addr m' off' h') := a' in
    Nat.eqb m m' && Bool.eqb h h' && (negb h || (off <=? off')) &&
    (off' + Z.of_nat n' <=? off + Z.of_nat n)
  | _, _ => false
  end.
(** The number of operands that have to be equal. *)
Definition vouches_for (o o' : code) : option nat :=
  match accessed o, accessed o' with
  | Some (a, n), Some (a', n') => if reaches a n a' n' then Some 1%nat else None
  | _, _ => if code_eqb o o' then match o with TableGet _ _ => Some 1%nat | _ => Some 3%nat end
            else None
  end.
(** In a linear memory, accesses at constants are compared by the ends of their bytes. *)
Definition vouches_at (o o' : code) (ks ks' : list (option Z)) : bool :=
  match accessed o, accessed o', ks, ks' with
  | Some (Addr m off h, n), Some (Addr m' off' h', n'), Some c :: _, Some c' :: _ =>
    Nat.eqb m m' && negb h && negb h' && (c' + off' + Z.of_nat n' <=? c + off + Z.of_nat n)
  | _, _, _, _ => false
  end.
Definition osier_traps (least : nat -> Z) : TrapLang Z code :=
  {| can_trap := may_trap; safe := cannot_trap least; vouch := vouches_for;
     vouch_at := vouches_at |}.
