(* Instances of rules: a copy of the table `ir::rules::RULES`, and the test that a term is the left
   side of a rule and its class the right side. That the rules hold is the hypothesis `RulesHold` of
   the theorem; solvers prove it (docs/testing.md). *)
open Kernel

type claim = { name : string; swapped : int; inner : int list; result : int option }

type pattern = X | Y | Zero | One | Ones | Non_zero | Is of int64 | C | D | Op of string * pattern
  list
type made = Bits of int64 | C_d of string | D_c of string
type right = Rx | Ry | Operand of int | R0 | R1 | Rones | Unary of string | Binary of string
           | With of string * made | Made of made
type guard = Always | X_is_bool | C_covers_x | C_above_x | X_misses_d | X_below_d
type rule = { opcode : string; only : string option; operands : pattern list; guard : guard;
  right : right }

let rule ?only ?(guard = Always) name opcode operands right =
  (name, { opcode; only; operands; guard; right })
let same_is right = List.map (fun o -> rule (o ^ "-same") o [X; X] right)
let zero_is_x = List.map (fun o -> rule (o ^ "-zero") o [X; Zero] Rx)
let negated (o, n) = rule ("not-" ^ o) "eqz" [Op (o, [X; Y])] (Binary n)
let constants o = rule (o ^ "-" ^ o) o [Op (o, [X; C]); D] (With (o, C_d o))
let rows =
  zero_is_x ["add"; "sub"; "or"; "xor"; "shl"; "sshr"; "ushr"; "rotl"; "rotr"]
  @ same_is R0 ["sub"; "xor"; "ne"; "slt"; "sgt"; "ult"; "ugt"]
  @ same_is R1 ["eq"; "sle"; "sge"; "ule"; "uge"]
  @ same_is Rx ["and"; "or"]
  @ List.map negated [
    "eq", "ne"; "ne", "eq"; "slt", "sge"; "sle", "sgt"; "sgt", "sle"; "sge", "slt"; "ult", "uge";
    "ule", "ugt"; "ugt", "ule"; "uge", "ult"]
  @ List.map constants ["add"; "mul"; "and"; "or"]
  @ [
    rule "mul-one" "mul" [X; One] Rx; rule "mul-zero" "mul" [X; Zero] R0;
    rule "sdiv-one" "sdiv" [X; One] Rx; rule "udiv-one" "udiv" [X; One] Rx;
    rule "srem-one" "srem" [X; One] R0; rule "urem-one" "urem" [X; One] R0;
    rule "and-zero" "and" [X; Zero] R0; rule "and-ones" "and" [X; Ones] Rx;
    rule "or-ones" "or" [X; Ones] Rones;
    rule "sadd-zero-fits" "sadd_overflows" [X; Zero] R0;
    rule "ssub-zero-fits" "ssub_overflows" [X; Zero] R0;
    rule "ssub-same-fits" "ssub_overflows" [X; X] R0;
    rule "smul-zero-fits" "smul_overflows" [X; Zero] R0;
    rule "smul-one-fits" "smul_overflows" [X; One] R0;
    rule "sadd-sextend-fits" "sadd_overflows" [Op ("sextend", [X]); Op ("sextend", [Y])] R0;
    rule "ssub-sextend-fits" "ssub_overflows" [Op ("sextend", [X]); Op ("sextend", [Y])] R0;
    rule "select-same" "select" [Y; X; X] Rx; rule "select-first" "select" [Non_zero; X; Y] Rx;
    rule "select-second" "select" [Zero; X; Y] Ry;
    rule "select-bool" "select" [X; One; Zero] ~guard:X_is_bool Rx;
    rule "add-sub" "add" [Op ("sub", [X; Y]); Y] Rx; rule "sub-add" "sub" [Op ("add", [X; Y]);
      Y] Rx;
    rule "sub-add-other" "sub" [Op ("add", [Y; X]); Y] Rx;
    rule "xor-xor-other" "xor" [Op ("xor", [Y; X]); Y] Rx;
    rule "xor-xor" "xor" [Op ("xor", [X; Y]); Y] Rx;
    rule "wrap-sextend" "wrap" [Op ("sextend", [X])] Rx;
    rule "wrap-uextend" "wrap" [Op ("uextend", [X])] Rx;
    rule "sext8-twice" "sext8" [Op ("sext8", [X])] (Operand 0);
    rule "sext16-twice" "sext16" [Op ("sext16", [X])] (Operand 0);
    rule "sext16-sext8" "sext16" [Op ("sext8", [X])] (Operand 0);
    rule "and-known" "and" [X; C] ~guard:C_covers_x Rx;
    rule "bool-ne-zero" "ne" [X; Zero] ~guard:X_is_bool Rx;
    rule "bool-eq-one" "eq" [X; One] ~guard:X_is_bool Rx;
    rule "not-not-bool" "eqz" [Op ("eqz", [X])] ~guard:X_is_bool Rx;
    rule "not-ne-one" "ne" [X; One] ~guard:X_is_bool (Unary "eqz");
    rule "eq-zero" "eq" [X; Zero] (Unary "eqz");
    rule "not-ne-zero" "eqz" [Op ("ne", [X; Zero])] (Unary "eqz");
    rule "add-sub-constants" "add" [Op ("sub", [X; C]); D] (With ("add", D_c "sub"));
    rule "sub-add-constants" "sub" [Op ("add", [X; C]); D] (With ("add", C_d "sub"));
    rule "sub-sub-constants" "sub" [Op ("sub", [X; C]); D] (With ("sub", C_d "add"));
    rule "xor-xor-constants" "xor" [Op ("xor", [X; C]); D] (With ("xor", C_d "xor"));
    rule "wrap-tagged" "wrap" [Op ("or", [Op ("uextend", [X]); C])] ~guard:C_above_x Rx;
    rule "and-tagged" "and" [Op ("or", [X; C]); D] ~guard:X_misses_d (Made (C_d "and"));
    rule "ushr-tagged" "ushr" [Op ("or", [X; C]); D] ~guard:X_below_d (Made (C_d "ushr"));
    rule "shifts-sext8" "sshr" ~only:"i32" [Op ("shl", [X; Is 24L]); Is 24L] (Unary "sext8");
    rule "shifts-sext16" "sshr" ~only:"i32" [Op ("shl", [X; Is 16L]); Is 16L] (Unary "sext16");
    rule "shifts-sext32" "sshr" ~only:"i64" [Op ("shl", [X; Is 32L]); Is 32L] (Unary "sext32");
    rule "sext8-mask" "and" ~only:"i32" [Op ("sext8", [X]); Is 0xffL] (With ("and", Bits 0xffL));
    rule "sext16-mask" "and" ~only:"i32" [Op ("sext16", [X]); Is 0xffffL] (With ("and",
      Bits 0xffffL));
    rule "mask-sext8" "sext8" ~only:"i32" [Op ("and", [X; Is 0xffL])] (Unary "sext8");
    rule "mask-sext16" "sext16" ~only:"i32" [Op ("and", [X; Is 0xffffL])] (Unary "sext16") ]
(* ** Operations *)

let width = function "i8" -> 8 | "i16" -> 16 | "i32" | "f32" -> 32 | _ -> 64
let mask ty = let w = width ty in
  if w = 64 then -1L else Int64.sub (Int64.shift_left 1L w) 1L
let compares = Lang.set [
  "eqz"; "eq"; "ne"; "slt"; "sle"; "sgt"; "sge"; "ult"; "ule"; "ugt"; "uge"; "sadd_overflows";
  "ssub_overflows"; "smul_overflows"; "feq"; "fne"; "flt"; "fle"; "fgt"; "fge"; "ref_is_null"]
let commuting = Lang.set [
  "add"; "mul"; "and"; "or"; "xor"; "eq"; "ne"; "sadd_overflows"; "smul_overflows"]
let number_of o = Option.map Lang.int64_of (folded Lang.fold_float o [])
let int_binary o ty c d =
  Option.map Lang.int64_of
    (folded Lang.fold_float (Binary (List.assoc o Lang.binary, List.assoc ty Lang.types))
      [Lang.z_of c; Lang.z_of d])

let by_name = Hashtbl.of_seq (List.to_seq rows)

(* ** The table *)

let operation tbl t = if t >= tbl.tn then None else
  match (tbl.tg t).tk with KOp (o, args) -> Some (Lang.op o, args) | _ -> None
let code tbl t = if t >= tbl.tn then None else
  match (tbl.tg t).tk with KOp (o, args) -> Some (o, args) | _ -> None
let class_of tbl t = if t < tbl.tn then (tbl.tg t).tc else t
let type_of tbl t = if t < tbl.tn then Lang.type_name (tbl.tg t).ty else ""
let constant tbl t = match code tbl t with Some (o, []) -> number_of o | _ -> None

(* The bits that may be set in a class, by the first term of the class and all others that rest on
   no merged read. *)
let own_bits tbl bits o args ty =
  let of_ i = match List.nth_opt args i with Some a -> bits.(a) | None -> -1L in
  let shifted f = match List.nth_opt args 1 with
    | Some k -> (match constant tbl k with
        | Some n -> f (of_ 0) (Int64.to_int (Int64.unsigned_rem n (Int64.of_int (width o.Lang.ty))))
        | None -> -1L)
    | None -> -1L in
  let found = match o.Lang.opcode, args with
    | "const", [] -> (match Lang.constant o.Lang.imm with Some z -> Lang.int64_of z | None -> -1L)
    | "and", _ -> Int64.logand (of_ 0) (of_ 1)
    | ("or" | "xor"), _ -> Int64.logor (of_ 0) (of_ 1)
    | "select", _ -> Int64.logor (of_ 1) (of_ 2)
    | ("uextend" | "wrap"), _ -> of_ 0
    | "shl", _ -> shifted Int64.shift_left
    | "ushr", _ -> shifted Int64.shift_right_logical
    | "uload8", _ -> 0xffL | "uload16", _ -> 0xffffL | "uload32", _ -> 0xffffffffL
    | c, _ when Lang.is compares c -> 1L
    | _ -> -1L in
  Int64.logand found (mask ty)
(* By class: its masks, each with the first term for which it counts, the last one first. A term
   says something about its class only for terms behind it: otherwise the guard of its own rule
   could rest on it. *)
let masks_of_classes tbl =
  let bits = Array.make tbl.tn (-1L) and masks = Array.make tbl.tn [] in
  for t = 0 to tbl.tn - 1 do
    let term = tbl.tg t in
    let ty = Lang.type_name term.ty in
    let own = match term.tk with
      | KOp (o, args) when List.for_all (fun a -> a < t) args -> own_bits tbl bits (Lang.op o)
        args ty
      | _ -> if ty = "memory" then -1L else mask ty in
    let known = match term.tb with ByMerged _ | ByApart _ -> false | _ -> true in
    if known && term.tc <= t then begin
      let narrowed = Int64.logand bits.(term.tc) own in
      if narrowed <> bits.(term.tc) then masks.(term.tc) <- (t + 1, narrowed) :: masks.(term.tc);
      bits.(term.tc) <- narrowed
    end
  done;
  masks
let last : ((code, claim) table * (int * int64) list array) option ref = ref None
(* The bits that may be set in a class, as far as the terms before a term tell. *)
let possible tbl t c =
  let masks = match !last with
    | Some (known, masks) when known == tbl -> masks
    | _ -> let masks = masks_of_classes tbl in last := Some (tbl, masks); masks in
  if c >= tbl.tn then -1L
  else match List.find_opt (fun (from, _) -> from <= t) masks.(c) with
    | Some (_, bits) -> bits
    | None -> -1L

(* ** Matching *)

type bound = { mutable x : int option; mutable y : int option; mutable c : int64 option;
  mutable d : int64 option }
exception No

let is_ones tbl c = match constant tbl c with
  | Some n -> Int64.equal n (mask (type_of tbl c)) | None -> false
let bind tbl b arg pattern =
  let once get set value = match get () with Some v -> v = value | None -> set value; true in
  let number = constant tbl arg in
  let fits = match pattern, number with
    | X, _ -> once (fun () -> b.x) (fun v -> b.x <- Some v) arg
    | Y, _ -> once (fun () -> b.y) (fun v -> b.y <- Some v) arg
    | Zero, Some n -> n = 0L | One, Some n -> n = 1L | Non_zero, Some n -> n <> 0L
    | Is k, Some n -> n = k | Ones, Some _ -> is_ones tbl arg
    | C, Some n -> once (fun () -> b.c) (fun v -> b.c <- Some v) n
    | D, Some n -> once (fun () -> b.d) (fun v -> b.d <- Some v) n
    | _ -> false in
  if not fits then raise No

(* The operations of the pattern, the outermost first, in the order that `swapped` counts. *)
let find tbl rule t claim =
  let b = { x = None; y = None; c = None; d = None } in
  let work = Queue.create () and inner = ref claim.inner and at = ref 0 in
  Queue.add (t, rule.opcode, rule.operands) work;
  while not (Queue.is_empty work) do
    let (u, wanted, patterns) = Queue.pop work in
    match operation tbl u with
    | Some (o, args) when o.Lang.opcode = wanted && List.length args = List.length patterns ->
      if !at = 0 && rule.only <> None && rule.only <> Some o.Lang.ty then raise No;
      let swapped = !at < 8 && (claim.swapped lsr !at) land 1 = 1 in
      if swapped && not (Lang.is commuting wanted) then raise No;
      List.iter2 (fun arg pattern -> match pattern, !inner with
        | Op (o, ps), named :: rest ->
          if named >= u || class_of tbl named <> arg || tbl.mdep named <> [] then raise No;
          inner := rest;
          Queue.add (named, o, ps) work
        | Op _, [] -> raise No
        | _ -> bind tbl b arg pattern) (if swapped then List.rev args else args) patterns;
      incr at
    | _ -> raise No
  done;
  if !inner <> [] then raise No;
  b

let need = function Some v -> v | None -> raise No
let satisfies tbl t b guard =
  let x () = possible tbl t (need b.x) in
  let width_of_x () = type_of tbl (need b.x) in
  match guard with
  | Always -> true
  | X_is_bool -> Int64.logand (x ()) (-2L) = 0L
  | C_covers_x -> Int64.logand (x ()) (Int64.lognot (need b.c)) = 0L
  | C_above_x -> Int64.logand (need b.c) (mask (width_of_x ())) = 0L
  | X_misses_d -> Int64.logand (x ()) (need b.d) = 0L
  | X_below_d ->
    let n = Int64.unsigned_rem (need b.d) (Int64.of_int (width (width_of_x ()))) in
    Int64.shift_right_logical (x ()) (Int64.to_int n) = 0L

let number b ty = function
  | Bits n -> n
  | C_d o -> need (int_binary o ty (need b.c) (need b.d))
  | D_c o -> need (int_binary o ty (need b.d) (need b.c))
(* The term named as the right side is this operation, on operands that fit. *)
let is_made tbl b t claim c opcode fits =
  let r = need claim.result in
  match operation tbl r with
  | Some (o, args) ->
    r < t && class_of tbl r = c && tbl.mdep r = [] && o.Lang.opcode = opcode
    && o.Lang.ty = type_of tbl (need b.x)
    && (fits args || (Lang.is commuting opcode && fits (List.rev args)))
  | None -> false
let gives tbl b rule t claim c =
  let is n = constant tbl c = Some n in
  match rule.right with
  | Rx -> b.x = Some c | Ry -> b.y = Some c
  | Operand i -> (match operation tbl t with Some (_, args) ->
    List.nth_opt args i = Some c | None -> false)
  | R0 -> is 0L | R1 -> is 1L | Rones -> is_ones tbl c
  | Unary o -> is_made tbl b t claim c o (fun args -> args = [need b.x])
  | Binary o -> is_made tbl b t claim c o (fun args -> args = [need b.x; need b.y])
  | Made m -> let ty = type_of tbl (need b.x) in type_of tbl c = ty && is (number b ty m)
  | With (o, m) ->
    let n = number b (type_of tbl (need b.x)) m in
    is_made tbl b t claim c o (function [x; k] -> x = need b.x && constant tbl k = Some n | _ ->
      false)

let holds tbl claim t =
  match Hashtbl.find_opt by_name claim.name with
  | None -> false
  | Some rule ->
    try
      let b = find tbl rule t claim in
      satisfies tbl t b rule.guard && gives tbl b rule t claim (class_of tbl t)
    with No -> false
