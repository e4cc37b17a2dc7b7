(* Reads operations, types and constants. The kernel says which of them fold, commute, trap, read
   and write (Operations.v). Floats alone fold here. *)
open Kernel

let set l = let h = Hashtbl.create 64 in List.iter (fun o -> Hashtbl.replace h o ()) l; h
let is t o = Hashtbl.mem t o
let split c s = String.split_on_char c s

(* ** Numbers *)

let rec pos n =   (* n is not zero, and unsigned *)
  let half = Int64.shift_right_logical n 1 in
  if n = 1L then XH
  else if Int64.logand n 1L = 1L then XI (pos half) else XO (pos half)
let z_of n = if n = 0L then Z0 else Zpos (pos n)
(* The low 64 bits. *)
let int64_of z =
  let rec go = function
    | XH -> 1L
    | XO p -> Int64.shift_left (go p) 1
    | XI p -> Int64.logor (Int64.shift_left (go p) 1) 1L in
  match z with Z0 -> 0L | Zpos p -> go p | Zneg p -> Int64.neg (go p)
(* Numbers are read as unsigned. *)
let bits_of w = Int64.of_string ("0u" ^ w)

(* ** Types *)

let types = ["i8", I8; "i16", I16; "i32", I32; "i64", I64; "f32", F32; "f64", F64;
  "funcref", FuncRef; "externref", ExternRef; "ref", Ref]
let memory_type = memory_type
let no_type = no_type
let type_codes : (string, int) Hashtbl.t = Hashtbl.create 16
let type_names : (int, string) Hashtbl.t = Hashtbl.create 16
let add_type name n = Hashtbl.replace type_codes name n; Hashtbl.replace type_names n name
let () = add_type "memory" memory_type; List.iter (fun (name, t) -> add_type name (tcode t)) types
(* A name that is no type has a number of its own, and no operation takes it. *)
let type_code name =
  match Hashtbl.find_opt type_codes name with
  | Some n -> n
  | None -> let n = 1 + Hashtbl.length type_codes in add_type name n; n
let type_name code = try Hashtbl.find type_names code with Not_found -> ""

(* ** Floats

   They fold in double precision. A sum, difference, product, quotient or root of two floats of
   single precision is rounded twice without harm, since a double has more than twice the digits. No
   fold gives a NaN. *)

let float_of t x = if t = F32 then Int32.float_of_bits (Int64.to_int32 x)
  else Int64.float_of_bits x
let of_float t r =
  if r <> r then None
  else if t = F32 then Some (Int64.logand (Int64.of_int32 (Int32.bits_of_float r)) 0xffffffffL)
  else Some (Int64.bits_of_float r)
(* A number of 64 bits is rounded once: bits below the precision of a float leave a mark that tips
   the rounding, and nothing else. *)
let from_int t source signed x =
  let magnitude x =   (* unsigned *)
    if Int64.shift_right_logical x 53 = 0L then Int64.to_float x
    else
      let low = Int64.logand x 0x7ffL and high = Int64.shift_right_logical x 11 in
      (* A double has 53 digits, so it needs the bits below to be rounded itself. *)
      if t = F32 then ldexp (Int64.to_float (if low = 0L then high else Int64.logor high 1L)) 11
      else if Int64.compare x 0L >= 0 then Int64.to_float x
      else 2. *. Int64.to_float (Int64.logor (Int64.shift_right_logical x 1) (Int64.logand x 1L)) in
  match source, signed with
  | I32, true -> of_float t (Int32.to_float (Int64.to_int32 x))
  | (I32 | I64), false -> of_float t (magnitude x)
  | I64, true ->
    of_float t (if Int64.compare x 0L < 0 then -. magnitude (Int64.neg x) else magnitude x)
  | _ -> None
let nearest x =
  let big = 4503599627370496. (* 2^52: from there on, doubles are whole *) in
  if Float.abs x >= big then x else Float.copy_sign ((Float.abs x +. big) -. big) x
(* -0 is less than 0. *)
let least x y = if x = y then (if Float.sign_bit x then x else y) else if x < y then x else y
let unless_nan f x y = if x <> x then x else if y <> y then y else f x y
let greatest x y = if x = y then (if Float.sign_bit x then y else x) else if x > y then x else y
(* A float rounded toward zero, if it lies in the range, or else the nearest number of it. *)
let to_int t signed saturates x =
  let w = if t = I32 then 32 else 64 in
  let top = ldexp 1. (if signed then w - 1 else w) in
  let bottom = if signed then -. top else 0. in
  let x = Float.trunc x in
  let exact x = if x >= 9223372036854775808.
    then Int64.logxor (Int64.of_float (x -. 9223372036854775808.)) Int64.min_int
    else Int64.of_float x in
  let all = if w = 32 then 0xffffffffL else -1L in
  let found =
    if x <> x then (if saturates then Some 0L else None)
    else if x >= bottom && x < top then Some (exact x)
    else if not saturates then None
    else if x < bottom then Some (if signed then Int64.shift_left (-1L) (w - 1) else 0L)
    else Some (if signed then Int64.shift_right_logical all 1 else all) in
  Option.map (Int64.logand all) (if t = I32 || t = I64 then found else None)
let fold_float (FCode (f, source, t)) args =
  let fl = float_of source in
  let found = match f, List.map int64_of args with
    | Fadd, [x; y] -> of_float t (fl x +. fl y) | Fsub, [x; y] -> of_float t (fl x -. fl y)
    | Fmul, [x; y] -> of_float t (fl x *. fl y) | Fdiv, [x; y] -> of_float t (fl x /. fl y)
    | Fsqrt, [x] -> of_float t (sqrt (fl x))
    | (Promote | Demote), [x] -> of_float t (fl x)
    | FromSint, [x] -> from_int t source true x
    | FromUint, [x] -> from_int t source false x
    | Fmin, [x; y] -> of_float t (unless_nan least (fl x) (fl y))
    | Fmax, [x; y] -> of_float t (unless_nan greatest (fl x) (fl y))
    | Fceil, [x] -> of_float t (Float.ceil (fl x)) | Ffloor, [x] -> of_float t (Float.floor (fl x))
    | Ftrunc, [x] -> of_float t (Float.trunc (fl x)) | Fnearest, [x] -> of_float t (nearest (fl x))
    | ToSint, [x] -> to_int t true false (fl x) | ToUint, [x] -> to_int t false false (fl x)
    | ToSintSat, [x] -> to_int t true true (fl x) | ToUintSat, [x] -> to_int t false true (fl x)
    | _ -> None in
  Option.map z_of found

(* ** Operations *)

let terminators = set [
  "jump"; "br_if"; "switch"; "return"; "trap"; "osr_exit"; "assume"; "leave"]
(* Instructions with an effect. Stores and writes of globals are writes of one place, unless the
   certificate gives the memory after them no term. *)
let effects = set [
  "call"; "call_indirect"; "call_outside"; "memory_grow"; "memory_copy"; "memory_fill";
  "memory_init"; "data_drop"; "table_set"; "table_grow"; "table_fill"; "table_copy"; "table_init";
  "elem_drop"; "osr_test"; "store"; "store8"; "store16"; "store32"; "global_set"]
(* Effects that leave the state as it is. *)
let keeps_memory o = o = "call_outside"
let readers = set [
  "load"; "uload8"; "sload8"; "uload16"; "sload16"; "uload32"; "sload32"; "memory_size";
  "ref_bits"; "ref_of"; "table_get"; "table_size"; "global_get"; "call_reads"]

let unary = ["clz", UClz; "ctz", UCtz; "popcnt", UPopcnt; "bswap", UBswap;
  "sext8", USext8; "sext16", USext16; "sext32", USext32; "eqz", UEqz]
let binary = ["add", BAdd; "sub", BSub; "mul", BMul; "sdiv", BSdiv; "udiv", BUdiv; "srem", BSrem;
  "urem", BUrem; "and", BAnd; "or", BOr; "xor", BXor; "shl", BShl; "sshr", BSshr; "ushr", BUshr;
  "rotl", BRotl; "rotr", BRotr; "eq", BEq; "ne", BNe; "slt", BSlt; "sle", BSle; "sgt", BSgt;
  "sge", BSge; "ult", BUlt; "ule", BUle; "ugt", BUgt; "uge", BUge;
  "sadd_overflows", BSaddOverflows; "ssub_overflows", BSsubOverflows;
  "smul_overflows", BSmulOverflows]
let compare_floats = ["feq", FEq; "fne", FNe; "flt", FLt; "fle", FLe; "fgt", FGt; "fge", FGe]
let float_same = ["fadd", Fadd; "fsub", Fsub; "fmul", Fmul; "fdiv", Fdiv; "fmin", Fmin;
  "fmax", Fmax; "fceil", Fceil; "ffloor", Ffloor; "ftrunc", Ftrunc; "fnearest", Fnearest;
  "fsqrt", Fsqrt]
let float_other = ["float_from_sint", FromSint; "float_from_uint", FromUint;
  "sint_from_float", ToSint; "uint_from_float", ToUint; "sint_from_float_sat", ToSintSat;
  "uint_from_float_sat", ToUintSat; "fpromote", Promote; "fdemote", Demote]
(* Bytes, 0 for all of the type, and whether they are extended with their sign. *)
let loads = ["load", (0, false); "uload8", (1, false); "sload8", (1, true); "uload16", (2, false);
  "sload16", (2, true); "uload32", (4, false); "sload32", (4, true)]
let stores = ["store", 0; "store8", 1; "store16", 2; "store32", 4]

(* Numbers of names: functions, effects, and what is no operation. *)
let names : (string, int) Hashtbl.t = Hashtbl.create 64
let by_number : (int, string) Hashtbl.t = Hashtbl.create 64
let named name = match Hashtbl.find_opt names name with
  | Some n -> n
  | None ->
    let n = Hashtbl.length names in
    Hashtbl.add names name n; Hashtbl.add by_number n name; n
(* The opcode, the type and the immediate that an effect or an end has. *)
let parts n = split ' ' (Hashtbl.find by_number n)

(* An operation as its text has it: the type of the first operand counts for some alone. *)
type text = { opcode : string; ty : string; source : string; imm : string }
let fits_ty = function I8 -> 1 | I16 -> 2 | I32 | F32 -> 4 | _ -> 8
let address imm = match split ':' imm with
  | ["address"; m; o] -> Some (Addr (int_of_string m, z_of (bits_of o), false))
  | ["host"; m; o] -> Some (Addr (int_of_string m, z_of (bits_of o), true))
  | _ -> None
let numbered imm = match split ':' imm with [_; n] -> int_of_string_opt n | _ -> None
let constant imm = match split ':' imm with ["bits"; n] -> Some (z_of (bits_of n)) | _ -> None

(* An operation that reads or writes the state, by its controlling type. *)
let parse_access opcode t imm =
  let len n = if n = 0 then fits_ty t else n in
  match List.assoc_opt opcode loads, List.assoc_opt opcode stores, address imm, numbered imm with
  | Some (n, signed), _, Some a, _ -> Some (Load (t, len n, signed, a))
  | _, Some n, Some a, _ -> Some (Store (t, len n, a))
  | _, _, _, Some n ->
    (match opcode with
     | "memory_size" -> Some (MemorySize n) | "table_size" -> Some (TableSize n)
     | "table_get" -> Some (TableGet (t, n)) | "global_get" -> Some (GlobalGet (t, n))
     | "global_set" -> Some (GlobalSet (t, n)) | _ -> None)
  | _ -> None
(* An operation by its controlling type and the type of its first operand. *)
let parse_typed { opcode = o; imm; _ } t source =
  let find l make = Option.map make (List.assoc_opt o l) in
  let first l = List.find_map (fun f -> f ()) l in
  let of_source make = Option.map make source in
  first [
    (fun () -> find unary (fun u -> Unary (u, t)));
    (fun () -> find binary (fun b -> Binary (b, t)));
    (fun () -> find compare_floats (fun c -> Compare (c, t)));
    (fun () -> find float_same (fun f -> Float (FCode (f, t, t))));
    (fun () -> Option.bind (List.assoc_opt o float_other) (fun f ->
      of_source (fun s -> Float (FCode (f, s, t)))));
    (fun () -> parse_access o t imm);
    (fun () -> match o with
      | "const" -> Option.map (fun z -> Const (t, z)) (constant imm)
      | "sextend" -> of_source (fun s -> Extend (true, s, t))
      | "uextend" -> of_source (fun s -> Extend (false, s, t))
      | "wrap" -> of_source (fun s -> Wrap (s, t))
      | "bitcast" -> of_source (fun s -> Bitcast (s, t))
      | "select" -> of_source (fun s -> Select (s, t))
      | "fabs" -> Some (Move (FAbs, t)) | "fneg" -> Some (Move (FNeg, t))
      | "fcopysign" -> Some (Copysign t)
      | "ref_is_null" -> Some (RefIsNull t)
      | "ref_eq" -> Some RefEq | "ref_bits" -> Some RefBits | "ref_of" -> Some RefOf
      | "call_pure" -> Some (CallPure (t, named imm))
      | "call_reads" -> Some (CallReads (t, named imm))
      | _ -> None) ]
let unknown x = End (named (String.concat " " [x.opcode; x.ty; x.imm]))
let parse x = match x.opcode with
  | "jump" -> Jump | "br_if" -> BrIf | "switch" -> Switch
  | "assume" ->
    (match split ':' x.imm with
     | ["assumed"; n; _] -> Assume (z_of (bits_of n), named (x.ty ^ " " ^ x.imm))
     | _ -> unknown x)
  | _ ->
    match List.assoc_opt x.ty types with
    | None -> unknown x
    | Some t ->
      match parse_typed x t (List.assoc_opt x.source types) with
      | Some o -> o | None -> unknown x

let known : (text, code) Hashtbl.t = Hashtbl.create 256
let texts : (code, text) Hashtbl.t = Hashtbl.create 256
let key opcode ty source imm =
  let x = { opcode; ty; source; imm } in
  match Hashtbl.find_opt known x with
  | Some o -> o
  | None ->
    let o = parse x in
    Hashtbl.add known x o;
    if not (Hashtbl.mem texts o) then Hashtbl.add texts o x;
    o
let op o = Hashtbl.find texts o
(* An effect, with the types of its results, memory among them. *)
let effect_of opcode ty imm results =
  if List.mem_assoc opcode stores || opcode = "global_set" then key opcode ty "" imm
  else Effect (named (String.concat " " [opcode; ty; imm]), results)

let lang = rule_lang fold_float

(* ** Traps *)

(* The least pages of memories, as the file says. *)
let least : (int, z) Hashtbl.t = Hashtbl.create 4
let traps () = osier_traps (fun m -> try Hashtbl.find least m with Not_found -> Z0)
