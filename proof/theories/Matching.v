(** Instances of rules: the test that a term matches a row and its class is the right side, and
    [rules_hold]: a term that passes is equal to its class. *)
From Coq Require Import List Arith ZArith Lia Bool String.
Import ListNotations.
From Osier Require Import Util Terms Classes Integers Bits Operations Meaning Rules Rows Concrete.
Local Open Scope Z_scope.

(** Claimed: for each operation in the pattern of a row, the term that it matches and whether its
    operands are exchanged. *)
Inductive found := Here | Inner (u : nat) (swap : bool) (l : list found).
(** Claimed: the row, how it matches, the term of the class that is the right side, and terms that
    show which bits of classes may be set. *)
Record citation := Citation {
  of_row : nat; swap : bool; inner : list found; made_by : nat; made_swap : bool;
  facts : list (nat * nat) }.

Definition head_dec (a b : head) : {a = b} + {a <> b}.
Proof. decide equality; auto using unary_dec, binary_dec, Bool.bool_dec. Defined.
Definition head_eqb (a b : head) : bool := if head_dec a b then true else false.
Lemma head_eqb_ok a b : head_eqb a b = true -> a = b.
Proof. unfold head_eqb. destruct (head_dec a b); congruence. Qed.

Record bound := Bound { bx : option nat; by_ : option nat; bc : option Z; bd : option Z }.

Section Match.
Variable run : fcode -> list Z -> option Z.
Variable T : table code citation.
Notation cls := (cls T).
Notation tty := (tty T).
Definition op_at (t : nat) : option (code * list nat) :=
  match knd T t with Some (KOp o args) => Some (o, args) | _ => None end.
Definition const_of (c : nat) : option Z := constant (osier run (fun _ _ _ => false)) T c.
Definition is_const (c : nat) (z : Z) : bool :=
  match const_of c with Some k => k =? z | None => false end.
Definition put (o : option nat) (a : nat) : bool :=
  match o with Some x => Nat.eqb x a | None => true end.
Definition put_z (o : option Z) (z : Z) : bool :=
  match o with Some k => k =? z | None => true end.

(** A term before [t] that is equal to its class if [t] rests on what it rests on. *)
Definition usable (t u c : nat) : bool :=
  Nat.ltb u t && relies T t u && Nat.eqb (cls u) c && Nat.eqb (tty u) (tty c).
Fixpoint bind (t : nat) (p : pat) (f : found) (a : nat) (b : bound) : option bound :=
  match p with
  | X => if put (bx b) a then Some (Bound (Some a) (by_ b) (bc b) (bd b)) else None
  | Y => if put (by_ b) a then Some (Bound (bx b) (Some a) (bc b) (bd b)) else None
  | Zero => if is_const a 0 then Some b else None
  | One => if is_const a 1 then Some b else None
  | Ones => if is_const a (Z.ones (width_of (tty a))) then Some b else None
  | NonZero => match const_of a with Some k => if k =? 0 then None else Some b | None => None end
  | Rules.Bits z => if is_const a z then Some b else None
  | C => match const_of a with
         | Some k => if put_z (bc b) k then Some (Bound (bx b) (by_ b) (Some k) (bd b)) else None
         | None => None
         end
  | D => match const_of a with
         | Some k => if put_z (bd b) k then Some (Bound (bx b) (by_ b) (bc b) (Some k)) else None
         | None => None
         end
  | Op h ps =>
    match f with
    | Here => None
    | Inner u sw fs =>
      match op_at u with
      | Some (o, args) =>
        match head_of o with
        | Some (h', _, _) =>
          if usable t u a && head_eqb h h' && (negb sw || commuting o) then
            (fix binds ps fs l b :=
               match ps, l with
               | [], [] => Some b
               | p :: ps, a :: l =>
                 match bind t p (hd Here fs) a b with
                 | Some b => binds ps (tl fs) l b | None => None end
               | _, _ => None
               end) ps fs (if sw then rev args else args) b
          else None
        | None => None
        end
      | None => None
      end
    end
  end.
Definition binds (t : nat) : list pat -> list found -> list nat -> bound -> option bound :=
  fix binds ps fs l b :=
    match ps, l with
    | [], [] => Some b
    | p :: ps, a :: l =>
      match bind t p (hd Here fs) a b with Some b => binds ps (tl fs) l b | None => None end
    | _, _ => None
    end.

(** ** Bits that may be set *)
Definition masks := list (nat * Z).
Fixpoint mask_at (l : masks) (c : nat) : Z :=
  match l with
  | [] => Z.ones (width_of (tty c))
  | (d, m) :: r => if Nat.eqb d c then m else mask_at r c
  end.
Definition own_mask (l : masks) (u : nat) : Z :=
  match const_of u with
  | Some k => k
  | None =>
    match op_at u with
    | Some (Binary b t, [x; y]) =>
      match b with
      | BAnd => Z.land (mask_at l x) (mask_at l y)
      | BOr | BXor => Z.lor (mask_at l x) (mask_at l y)
      | BShl => match const_of y with
                | Some n => Z.shiftl (mask_at l x) (n mod bits t) | None => -1 end
      | BUshr => match const_of y with
                 | Some n => Z.shiftr (mask_at l x) (n mod bits t) | None => -1 end
      | _ => if is_compare b then 1 else -1
      end
    | Some (Select _ _, [_; x; y]) => Z.lor (mask_at l x) (mask_at l y)
    | Some (Extend false _ _, [x]) | Some (Wrap _ _, [x]) => mask_at l x
    | Some (Load _ n false _, _) => Z.ones (8 * Z.of_nat n)
    | Some (Unary UEqz _, [_]) | Some (Compare _ _, [_; _]) | Some (RefIsNull _, [_]) => 1
    | _ => -1
    end
  end.
Definition learn (t : nat) (l : masks) (f : nat * nat) : masks :=
  let (c, u) := f in
  if Nat.eqb u c || usable t u c then (c, Z.land (own_mask l u) (mask_at l c)) :: l else l.
Definition known_masks (t : nat) (fs : list (nat * nat)) : masks := fold_left (learn t) fs [].

(** ** The condition and the right side *)
Definition meets_b (m : masks) (b : bound) (g : guard) : bool :=
  match g, bx b with
  | Always, _ => true
  | XIsBool, Some x => Z.ldiff (mask_at m x) 1 =? 0
  | CCoversX, Some x => match bc b with Some c => Z.ldiff (mask_at m x) c =? 0 | None => false end
  | CAboveX, Some x =>
    match bc b with Some c => Z.land c (Z.ones (width_of (tty x))) =? 0 | None => false end
  | XMissesD, Some x => match bd b with Some d => Z.land (mask_at m x) d =? 0 | None => false end
  | XBelowD, Some x =>
    match bd b with
    | Some d => Z.shiftr (mask_at m x) (d mod width_of (tty x)) =? 0 | None => false end
  | XWithin z, Some x => Z.ldiff (mask_at m x) z =? 0
  | CWithin z, Some _ => match bc b with Some c => Z.ldiff c z =? 0 | None => false end
  | CCovers z, Some _ => match bc b with Some c => Z.ldiff z c =? 0 | None => false end
  | _, None => false
  end.
Definition of_nat (o : option nat) : nat := match o with Some x => x | None => 0%nat end.
Definition of_z (o : option Z) : Z := match o with Some z => z | None => 0 end.
Definition is_x (b : bound) (a : nat) : bool :=
  match bx b with Some x => Nat.eqb x a | None => false end.
Definition is_y (b : bound) (a : nat) : bool :=
  match by_ b with Some y => Nat.eqb y a | None => false end.
Definition made_b (b : bound) (m : made) (t : ty) : option Z :=
  let result o x y := Some (wrap (bits t) (binary_of o (bits t) x y)) in
  match m, bc b, bd b with
  | Known z, _, _ => Some z
  | TheC, Some c, _ => Some c
  | CthenD o, Some c, Some d => result o c d
  | DthenC o, Some c, Some d => result o d c
  | _, _, _ => None
  end.
Definition gives_b (t : nat) (k : citation) (b : bound) (r : right) (args : list nat)
  (s : ty) : bool :=
  let c := cls t in
  match r with
  | RX => is_x b c
  | RY => is_y b c
  | ROperand n => match nth_error args n with Some a => Nat.eqb a c | None => false end
  | RZero => is_const c 0
  | ROne => is_const c 1
  | ROnes => is_const c (Z.ones (width_of (tty t)))
  | RMade m =>
    match bx b, made_b b m s with
    | Some x, Some z => Nat.eqb (tty x) (tcode s) && Nat.eqb (tty t) (tcode s) && is_const c z
    | _, _ => false
    end
  | RUnary _ | RBinary _ | RWith _ _ =>
    let u := made_by k in
    usable t u c &&
    match r, op_at u with
    | RUnary o, Some (Unary o' _, [x]) => (if unary_dec o o' then true else false) && is_x b x
    | RBinary o, Some (Binary o' _, [x; y]) =>
      let '(x, y) := if made_swap k then (y, x) else (x, y) in
      (if binary_dec o o' then true else false) && (negb (made_swap k) || commutes o) &&
      is_x b x && is_y b y
    | RWith o m, Some (Binary o' s', [x; y]) =>
      let '(x, y) := if made_swap k then (y, x) else (x, y) in
      (if binary_dec o o' then true else false) && (negb (made_swap k) || commutes o) &&
      is_x b x && match made_b b m s' with Some z => is_const y z | None => false end
    | _, _ => false
    end
  end.
Definition nothing := Bound None None None None.
Definition instance (k : citation) (t : nat) : bool :=
  match nth_error rows (of_row k), op_at t with
  | Some r, Some (o, args) =>
    match head_of o with
    | Some (h, _, s) =>
      let l := if swap k then rev args else args in
      head_eqb (opcode r) h && (negb (swap k) || commuting o) &&
      match only r with Some u => ty_eqb s u | None => true end &&
      Nat.eqb (tty t) (tty (cls t)) &&
      match binds t (operands r) (inner k) l nothing with
      | Some b => meets_b (known_masks t (facts k)) b (condition r) && gives_b t k b (result r) l s
      | None => false
      end
    | None => false
    end
  | _, _ => false
  end.
End Match.
