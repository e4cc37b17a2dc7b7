(** The algebraic rules: the rows of [ir::rules::RULES], in their order. [rows_hold] proves each for
    all types and all contents. *)
From Coq Require Import List Arith ZArith Lia Bool String.
Import ListNotations.
From Osier Require Import Util Terms Integers Bits Operations Meaning.
Local Open Scope Z_scope.

Inductive head :=
| HUnary (o : unary) | HBinary (o : binary) | HSelect | HExtend (is_signed : bool) | HWrap.
(** What an operand has to be: any contents, the same for each [X]; a constant; an operation. *)
Inductive pat :=
| X | Y | Zero | One | Ones | NonZero | Bits (z : Z) | C | D | Op (h : head) (l : list pat).
(** A constant made of those that [C] and [D] stand for. *)
Inductive made := Known (z : Z) | TheC | CthenD (o : binary) | DthenC (o : binary).
Inductive right :=
| RX | RY | ROperand (n : nat) | RZero | ROne | ROnes
| RUnary (o : unary) | RBinary (o : binary) | RWith (o : binary) (m : made) | RMade (m : made).
Inductive guard :=
| Always | XIsBool | CCoversX | CAboveX | XMissesD | XBelowD | XWithin (z : Z)
| CWithin (z : Z) | CCovers (z : Z).
Record row := Row {
  title : string; only : option ty; opcode : head; operands : list pat; condition : guard;
  result : right }.
Definition rule (n : string) h l r := Row n None h l Always r.
Definition guarded (n : string) h l g r := Row n None h l g r.
Definition of_type t (n : string) h l r := Row n (Some t) h l Always r.
Definition Un := HUnary.
Definition Bi := HBinary.
Definition Sx := Op (HExtend true).
(** The bits of a sign extension: those that a mask keeps, those that a mask leaves, none. *)
Definition masked (n : string) o z :=
  guarded n (Bi BAnd) [Op (Un o) [X]; C] (CWithin z) (RWith BAnd TheC).
Definition masks (n : string) o z :=
  guarded n (Un o) [Op (Bi BAnd) [X; C]] (CCovers z) (RUnary o).
Definition clears (n : string) o v :=
  guarded n (Un o) [X] (XWithin (2 ^ 64 - 2 ^ v)) RZero.
Definition not_compare (n : string) o o' := rule n (Un UEqz) [Op (Bi o) [X; Y]] (RBinary o').

(** Neutral and absorbing operands. *)
Definition neutral : list row := [
  rule "add-zero" (Bi BAdd) [X; Zero] RX;
  rule "sub-zero" (Bi BSub) [X; Zero] RX;
  rule "mul-one" (Bi BMul) [X; One] RX;
  rule "mul-zero" (Bi BMul) [X; Zero] RZero;
  rule "sdiv-one" (Bi BSdiv) [X; One] RX;
  rule "udiv-one" (Bi BUdiv) [X; One] RX;
  rule "srem-one" (Bi BSrem) [X; One] RZero;
  rule "urem-one" (Bi BUrem) [X; One] RZero;
  rule "and-zero" (Bi BAnd) [X; Zero] RZero;
  rule "and-ones" (Bi BAnd) [X; Ones] RX;
  rule "or-zero" (Bi BOr) [X; Zero] RX;
  rule "or-ones" (Bi BOr) [X; Ones] ROnes;
  rule "xor-zero" (Bi BXor) [X; Zero] RX;
  rule "shl-zero" (Bi BShl) [X; Zero] RX;
  rule "sshr-zero" (Bi BSshr) [X; Zero] RX;
  rule "ushr-zero" (Bi BUshr) [X; Zero] RX;
  rule "rotl-zero" (Bi BRotl) [X; Zero] RX;
  rule "rotr-zero" (Bi BRotr) [X; Zero] RX
].
(** Equal operands. *)
Definition equal : list row := [
  rule "sub-same" (Bi BSub) [X; X] RZero;
  rule "and-same" (Bi BAnd) [X; X] RX;
  rule "or-same" (Bi BOr) [X; X] RX;
  rule "xor-same" (Bi BXor) [X; X] RZero;
  rule "eq-same" (Bi BEq) [X; X] ROne;
  rule "ne-same" (Bi BNe) [X; X] RZero;
  rule "slt-same" (Bi BSlt) [X; X] RZero;
  rule "sle-same" (Bi BSle) [X; X] ROne;
  rule "sgt-same" (Bi BSgt) [X; X] RZero;
  rule "sge-same" (Bi BSge) [X; X] ROne;
  rule "ult-same" (Bi BUlt) [X; X] RZero;
  rule "ule-same" (Bi BUle) [X; X] ROne;
  rule "ugt-same" (Bi BUgt) [X; X] RZero;
  rule "uge-same" (Bi BUge) [X; X] ROne
].
(** Arithmetic that cannot overflow, and selection. *)
Definition fitting : list row := [
  rule "sadd-zero-fits" (Bi BSaddOverflows) [X; Zero] RZero;
  rule "ssub-zero-fits" (Bi BSsubOverflows) [X; Zero] RZero;
  rule "ssub-same-fits" (Bi BSsubOverflows) [X; X] RZero;
  rule "smul-zero-fits" (Bi BSmulOverflows) [X; Zero] RZero;
  rule "smul-one-fits" (Bi BSmulOverflows) [X; One] RZero;
  rule "sadd-sextend-fits" (Bi BSaddOverflows) [Sx [X]; Sx [Y]] RZero;
  rule "ssub-sextend-fits" (Bi BSsubOverflows) [Sx [X]; Sx [Y]] RZero;
  rule "select-same" HSelect [Y; X; X] RX;
  rule "select-first" HSelect [NonZero; X; Y] RX;
  rule "select-second" HSelect [Zero; X; Y] RY;
  guarded "select-bool" HSelect [X; One; Zero] XIsBool RX
].
(** Inverse and repeated operations. *)
Definition inverse : list row := [
  rule "add-sub" (Bi BAdd) [Op (Bi BSub) [X; Y]; Y] RX;
  rule "sub-add" (Bi BSub) [Op (Bi BAdd) [X; Y]; Y] RX;
  rule "sub-add-other" (Bi BSub) [Op (Bi BAdd) [Y; X]; Y] RX;
  rule "xor-xor-other" (Bi BXor) [Op (Bi BXor) [Y; X]; Y] RX;
  rule "xor-xor" (Bi BXor) [Op (Bi BXor) [X; Y]; Y] RX;
  rule "wrap-sextend" HWrap [Sx [X]] RX;
  rule "wrap-uextend" HWrap [Op (HExtend false) [X]] RX;
  rule "sext8-twice" (Un USext8) [Op (Un USext8) [X]] (ROperand 0);
  rule "sext16-twice" (Un USext16) [Op (Un USext16) [X]] (ROperand 0);
  rule "sext32-twice" (Un USext32) [Op (Un USext32) [X]] (ROperand 0);
  rule "sext16-sext8" (Un USext16) [Op (Un USext8) [X]] (ROperand 0);
  rule "sext8-sext16" (Un USext8) [Op (Un USext16) [X]] (RUnary USext8);
  rule "sext8-sext32" (Un USext8) [Op (Un USext32) [X]] (RUnary USext8);
  rule "sext16-sext32" (Un USext16) [Op (Un USext32) [X]] (RUnary USext16)
].
(** Truth values. *)
Definition truth : list row := [
  guarded "and-none" (Bi BAnd) [X; D] XMissesD RZero;
  guarded "and-known" (Bi BAnd) [X; C] CCoversX RX;
  guarded "bool-ne-zero" (Bi BNe) [X; Zero] XIsBool RX;
  guarded "bool-eq-one" (Bi BEq) [X; One] XIsBool RX;
  guarded "not-not-bool" (Un UEqz) [Op (Un UEqz) [X]] XIsBool RX;
  guarded "not-ne-one" (Bi BNe) [X; One] XIsBool (RUnary UEqz);
  rule "eq-zero" (Bi BEq) [X; Zero] (RUnary UEqz);
  rule "not-ne-zero" (Un UEqz) [Op (Bi BNe) [X; Zero]] (RUnary UEqz)
].
(** Negated comparisons. *)
Definition negated : list row := [
  not_compare "not-eq" BEq BNe;
  not_compare "not-ne" BNe BEq;
  not_compare "not-slt" BSlt BSge;
  not_compare "not-sle" BSle BSgt;
  not_compare "not-sgt" BSgt BSle;
  not_compare "not-sge" BSge BSlt;
  not_compare "not-ult" BUlt BUge;
  not_compare "not-ule" BUle BUgt;
  not_compare "not-ugt" BUgt BUle;
  not_compare "not-uge" BUge BUlt
].
(** Two constants become one. *)
Definition merged : list row := [
  rule "add-add" (Bi BAdd) [Op (Bi BAdd) [X; C]; D] (RWith BAdd (CthenD BAdd));
  rule "add-sub-constants" (Bi BAdd) [Op (Bi BSub) [X; C]; D] (RWith BAdd (DthenC BSub));
  rule "sub-add-constants" (Bi BSub) [Op (Bi BAdd) [X; C]; D] (RWith BAdd (CthenD BSub));
  rule "sub-sub-constants" (Bi BSub) [Op (Bi BSub) [X; C]; D] (RWith BSub (CthenD BAdd));
  rule "mul-mul" (Bi BMul) [Op (Bi BMul) [X; C]; D] (RWith BMul (CthenD BMul));
  rule "and-and" (Bi BAnd) [Op (Bi BAnd) [X; C]; D] (RWith BAnd (CthenD BAnd));
  rule "or-or" (Bi BOr) [Op (Bi BOr) [X; C]; D] (RWith BOr (CthenD BOr));
  rule "xor-xor-constants" (Bi BXor) [Op (Bi BXor) [X; C]; D] (RWith BXor (CthenD BXor))
].
(** Tags; extensions written as shifts, or whose high bits are not needed. *)
Definition tagged : list row := [
  guarded "wrap-tagged" HWrap [Op (Bi BOr) [Op (HExtend false) [X]; C]] CAboveX RX;
  guarded "and-tagged" (Bi BAnd) [Op (Bi BOr) [X; C]; D] XMissesD (RMade (CthenD BAnd));
  guarded "ushr-tagged" (Bi BUshr) [Op (Bi BOr) [X; C]; D] XBelowD (RMade (CthenD BUshr));
  of_type I32 "shifts-sext8" (Bi BSshr) [Op (Bi BShl) [X; Bits 24]; Bits 24] (RUnary USext8);
  of_type I32 "shifts-sext16" (Bi BSshr) [Op (Bi BShl) [X; Bits 16]; Bits 16] (RUnary USext16);
  of_type I64 "shifts-sext32" (Bi BSshr) [Op (Bi BShl) [X; Bits 32]; Bits 32] (RUnary USext32);
  masked "sext8-mask" USext8 (Z.ones 8);
  masked "sext16-mask" USext16 (Z.ones 16);
  masked "sext32-mask" USext32 (Z.ones 32);
  masks "mask-sext8" USext8 (Z.ones 8);
  masks "mask-sext16" USext16 (Z.ones 16);
  masks "mask-sext32" USext32 (Z.ones 32);
  clears "sext8-none" USext8 8;
  clears "sext16-none" USext16 16;
  clears "sext32-none" USext32 32
].
Definition rows : list row :=
  neutral ++ equal ++ fitting ++ inverse ++ truth ++ negated ++ merged ++ tagged.

(** ** What a row says *)
Definition make (h : head) (s t : ty) : code :=
  match h with
  | HUnary o => Unary o t
  | HBinary o => Binary o t
  | HSelect => Select s t
  | HExtend b => Extend b s t
  | HWrap => Wrap s t
  end.
Definition sources (h : head) (s t : ty) : list nat :=
  match h with
  | HUnary _ => [tcode t]
  | HBinary _ => [tcode t; tcode t]
  | HSelect => [tcode s; tcode t; tcode t]
  | HExtend _ | HWrap => [tcode s]
  end.
Definition head_of (o : code) : option (head * ty * ty) :=
  match o with
  | Unary u t => Some (HUnary u, t, t)
  | Binary b t => Some (HBinary b, t, t)
  | Select s t => Some (HSelect, s, t)
  | Extend b s t => Some (HExtend b, s, t)
  | Wrap s t => Some (HWrap, s, t)
  | _ => None
  end.
Definition proper (h : head) (s t : ty) : bool :=
  match h with
  | HUnary o => is_int t && (low_bits o <? bits t)
  | HBinary _ => is_int t
  | HSelect => is_int s
  | HExtend _ => is_int s && is_int t && (bits s <? bits t)
  | HWrap => is_int s && is_int t && (bits t <? bits s)
  end.
Lemma head_make o h s t : head_of o = Some (h, s, t) -> o = make h s t.
Proof. destruct o; intro H; inversion H; reflexivity. Qed.
Lemma takes_make h s t l : takes (make h s t) l = true -> proper h s t = true /\ l = sources h s t.
Proof.
  destruct h; unfold takes, make; intro H;
    repeat (apply andb_true_iff in H; let Q := fresh "Q" in destruct H as [H Q]);
    match goal with G : nats_eqb _ _ = true |- _ => apply nats_eqb_ok in G; subst l end;
    unfold proper; simpl; rewrite ?H, ?Q0, ?Q1, ?Q2; auto.
Qed.

(** The contents and the types of [X] and [Y], and the constants [C] and [D]. *)
Record env := Env { vx : value; tx : nat; vy : value; ty_ : nat; vc : Z; vd : Z }.
Definition made_of (e : env) (m : made) (t : ty) : Z :=
  let result o a b := wrap (bits t) (binary_of o (bits t) a b) in
  match m with
  | Known z => z
  | TheC => vc e
  | CthenD o => result o (vc e) (vd e)
  | DthenC o => result o (vd e) (vc e)
  end.
Definition meets (e : env) (g : guard) : Prop :=
  let x := number (vx e) in
  match g with
  | Always => True
  | XIsBool => x = 0 \/ x = 1
  | CCoversX => Z.land x (vc e) = x
  | CAboveX => Z.land (vc e) (Z.ones (width_of (tx e))) = 0
  | XMissesD => Z.land x (vd e) = 0
  | XBelowD => Z.shiftr x (vd e mod width_of (tx e)) = 0
  | XWithin z => Z.land x z = x
  | CWithin z => Z.land (vc e) z = vc e
  | CCovers z => Z.land z (vc e) = z
  end.

Section Rows.
Context {W : Type} (K : machine W).
Notation operate := (operate K).
Fixpoint fit (e : env) (p : pat) (t : nat) (v : value) : Prop :=
  has_type t v /\
  match p with
  | X => v = vx e /\ t = tx e
  | Y => v = vy e /\ t = ty_ e
  | Zero => v = VBits 0
  | One => v = VBits 1
  | Ones => v = VBits (Z.ones (width_of t))
  | NonZero => exists z, v = VBits z /\ z <> 0
  | Bits z => v = VBits z
  | C => v = VBits (vc e)
  | D => v = VBits (vd e)
  | Op h l => exists s r vs, proper h s r = true /\ t = result_type (make h s r) /\
    v = operate (make h s r) vs /\
    (fix fits l ts vs := match l, ts with
       | [], [] => vs = []
       | p :: l, t :: ts => exists v r, vs = v :: r /\ fit e p t v /\ fits l ts r
       | _, _ => False
       end) l (sources h s r) vs
  end.
Definition fits (e : env) : list pat -> list nat -> list value -> Prop :=
  fix fits l ts vs :=
    match l, ts with
    | [], [] => vs = []
    | p :: l, t :: ts => exists v r, vs = v :: r /\ fit e p t v /\ fits l ts r
    | _, _ => False
    end.
Definition gives (e : env) (r : right) (vs : list value) (t : nat) (v : value) : Prop :=
  match r with
  | RX => v = vx e /\ tx e = t
  | RY => v = vy e /\ ty_ e = t
  | ROperand n => nth_error vs n = Some v
  | RZero => v = VBits 0
  | ROne => v = VBits 1
  | ROnes => v = VBits (Z.ones (width_of t))
  | RUnary o => exists s, tx e = tcode s /\ v = operate (Unary o s) [vx e]
  | RBinary o => exists s, tx e = tcode s /\ v = operate (Binary o s) [vx e; vy e]
  | RWith o m => exists s, tx e = tcode s /\ v = operate (Binary o s) [vx e; VBits (made_of e m s)]
  | RMade m => exists s, tx e = tcode s /\ t = tcode s /\ v = VBits (made_of e m s)
  end.
Definition row_holds (r : row) : Prop := forall e s t vs v,
  proper (opcode r) s t = true -> match only r with Some u => t = u | None => True end ->
  fits e (operands r) (sources (opcode r) s t) vs -> meets e (condition r) ->
  gives e (result r) vs (result_type (make (opcode r) s t)) v ->
  operate (make (opcode r) s t) vs = v.

(** ** Proofs *)
Lemma fit_op e h l t v : fit e (Op h l) t v <-> has_type t v /\
  exists s r vs, proper h s r = true /\ t = result_type (make h s r) /\
  v = operate (make h s r) vs /\ fits e l (sources h s r) vs.
Proof. reflexivity. Qed.
Lemma tcode_inj a b : tcode a = tcode b -> a = b.
Proof. destruct a, b; simpl; congruence. Qed.
Lemma typed_bits t v : has_type (tcode t) v -> exists z, v = VBits z /\ 0 <= z < 2 ^ bits t.
Proof. unfold has_type. rewrite not_memory, width_tcode. auto. Qed.
Lemma op_unary o t x : operate (Unary o t) [VBits x] =
  VBits (if is_test o then unary_of o (bits t) x else wrap (bits t) (unary_of o (bits t) x)).
Proof.
  unfold Meaning.operate, raw, coerce. simpl. destruct (is_test o) eqn:E.
  - destruct o; try discriminate. simpl. now destruct (x =? 0).
  - now rewrite not_memory, width_tcode.
Qed.
Lemma op_binary o t x y : operate (Binary o t) [VBits x; VBits y] =
  VBits (if is_compare o then binary_of o (bits t) x y
         else wrap (bits t) (binary_of o (bits t) x y)).
Proof.
  unfold Meaning.operate, raw, coerce. cbn [exact map number result_type].
  destruct (is_compare o) eqn:E; [|now rewrite not_memory, width_tcode].
  destruct o; try discriminate; unfold binary_of;
    match goal with |- context [bit ?b] => now destruct b end.
Qed.
Lemma op_select s t c x y : operate (Select s t) [VBits c; VBits x; VBits y] =
  VBits (wrap (bits t) (if c =? 0 then y else x)).
Proof. unfold Meaning.operate, raw, coerce. simpl. now rewrite not_memory, width_tcode. Qed.
Lemma op_extend b s t x : operate (Extend b s t) [VBits x] =
  VBits (wrap (bits t) (if b then signed (bits s) x else wrap (bits s) x)).
Proof.
  unfold Meaning.operate, raw, coerce. destruct b; simpl; now rewrite not_memory, width_tcode.
Qed.
Lemma op_wrap s t x : operate (Wrap s t) [VBits x] = VBits (wrap (bits t) x).
Proof. unfold Meaning.operate, raw, coerce. simpl. now rewrite not_memory, width_tcode. Qed.
End Rows.
