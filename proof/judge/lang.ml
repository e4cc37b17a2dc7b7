(* The language as the kernel sees it: operations are numbers, constants are bits. *)
open Kernel

type op = { opcode : string; ty : string; source : string; imm : string }
let known : (op, int) Hashtbl.t = Hashtbl.create 256
let by_number : op array ref = ref [||]
let count = ref 0
(* The number of an operation. Operations are equal if their numbers are. *)
let number op =
  match Hashtbl.find_opt known op with
  | Some n -> n
  | None ->
    let n = !count in
    if n >= Array.length !by_number then
      by_number := Array.append !by_number (Array.make (n + 64) op);
    !by_number.(n) <- op;
    incr count;
    Hashtbl.add known op n;
    n
let op n = !by_number.(n)

let set l = let h = Hashtbl.create 64 in List.iter (fun o -> Hashtbl.replace h o ()) l; h
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
let commuting = set [
  "add"; "mul"; "and"; "or"; "xor"; "eq"; "ne"; "sadd_overflows"; "smul_overflows"; "feq"; "fne";
  "ref_eq"]
(* Operations whose meaning depends on the type of the first operand, too. *)
let converting = set [
  "sextend"; "uextend"; "wrap"; "float_from_sint"; "float_from_uint"; "sint_from_float";
  "uint_from_float"; "sint_from_float_sat"; "uint_from_float_sat"; "fpromote"; "fdemote";
  "bitcast"; "select"]
let is t o = Hashtbl.mem t o
let key opcode ty source imm =
  number { opcode; ty; source = (if is converting opcode then source else ""); imm }

(* Numbers are read as unsigned. *)
let bits_of w = Int64.of_string ("0u" ^ w)

let width = function
  | "i1" -> 1 | "i8" -> 8 | "i16" -> 16 | "i32" | "f32" -> 32 | _ -> 64
let mask ty = let w = width ty in
  if w = 64 then -1L else Int64.sub (Int64.shift_left 1L w) 1L
let sign ty x = let u = 64 - width ty in Int64.shift_right (Int64.shift_left x u) u
let ucmp = Int64.unsigned_compare
let bit b = Some (if b then 1L else 0L)

let int_binary o ty x y =
  let open Int64 in
  let m = mask ty and w = width ty in
  let x = logand x m and y = logand y m in
  let n = to_int (unsigned_rem y (of_int w)) in
  let some r = Some (logand r m) in
  let sx = sign ty x and sy = sign ty y in
  match o with
  | "add" -> some (add x y) | "sub" -> some (sub x y) | "mul" -> some (mul x y)
  | "and" -> some (logand x y) | "or" -> some (logor x y) | "xor" -> some (logxor x y)
  | "shl" -> some (shift_left x n) | "ushr" -> some (shift_right_logical x n)
  | "sshr" -> some (shift_right sx n)
  | "rotl" -> some (if n = 0 then x else logor (shift_left x n) (shift_right_logical x (w - n)))
  | "rotr" -> some (if n = 0 then x else logor (shift_right_logical x n) (shift_left x (w - n)))
  | "udiv" -> if y = 0L then None else some (unsigned_div x y)
  | "urem" -> if y = 0L then None else some (unsigned_rem x y)
  | "sdiv" ->
    let least = sign ty (shift_left 1L (w - 1)) in
    if y = 0L || (sy = -1L && sx = least) then None else some (div sx sy)
  | "srem" -> if y = 0L then None else if sy = -1L then Some 0L else some (rem sx sy)
  | "eq" -> bit (x = y) | "ne" -> bit (x <> y)
  | "ult" -> bit (ucmp x y < 0) | "ule" -> bit (ucmp x y <= 0)
  | "ugt" -> bit (ucmp x y > 0) | "uge" -> bit (ucmp x y >= 0)
  | "slt" -> bit (compare sx sy < 0) | "sle" -> bit (compare sx sy <= 0)
  | "sgt" -> bit (compare sx sy > 0) | "sge" -> bit (compare sx sy >= 0)
  | _ -> None

let int_unary o ty x =
  let open Int64 in
  let m = mask ty and w = width ty in
  let x = logand x m in
  let rec ones n y = if y = 0L then n else ones (n + 1) (logand y (sub y 1L)) in
  let rec leading n = if n = w then n
    else if logand (shift_right_logical x (w - 1 - n)) 1L = 1L then n else leading (n + 1) in
  let rec trailing n = if n = w then n
    else if logand (shift_right_logical x n) 1L = 1L then n else trailing (n + 1) in
  match o with
  | "eqz" -> bit (x = 0L)
  | "popcnt" -> Some (of_int (ones 0 x))
  | "clz" -> Some (of_int (leading 0)) | "ctz" -> Some (of_int (trailing 0))
  | "sext8" -> Some (logand (sign "i8" x) m) | "sext16" -> Some (logand (sign "i16" x) m)
  | "sext32" -> Some (logand (sign "i32" x) m)
  | _ -> None

(* Floats fold in double precision. A sum, difference, product, quotient or root of two floats of
   single precision is rounded twice without harm, since a double has more than twice the digits. *)
let float_of ty x = if ty = "f32" then Int32.float_of_bits (Int64.to_int32 x)
  else Int64.float_of_bits x
let of_float ty r =
  if r <> r then None
  else if ty = "f32" then Some (Int64.logand (Int64.of_int32 (Int32.bits_of_float r)) 0xffffffffL)
  else Some (Int64.bits_of_float r)
let float_binary o ty x y =
  let a = float_of ty x and b = float_of ty y in
  match o with
  | "fadd" -> of_float ty (a +. b) | "fsub" -> of_float ty (a -. b)
  | "fmul" -> of_float ty (a *. b) | "fdiv" -> of_float ty (a /. b)
  | "feq" -> bit (a = b) | "fne" -> bit (a <> b) | "flt" -> bit (a < b) | "fle" -> bit (a <= b)
  | "fgt" -> bit (a > b) | "fge" -> bit (a >= b)
  | _ -> None
let float_unary o ty x =
  let sign = Int64.shift_left 1L (width ty - 1) in
  match o with
  | "fneg" -> Some (Int64.logxor x sign)
  | "fabs" -> Some (Int64.logand x (Int64.lognot sign))
  | "fsqrt" -> of_float ty (sqrt (float_of ty x))
  | _ -> None
(* A number of 64 bits is not rounded to single precision here: it would be rounded twice. *)
let from_int ty source signed_ x =
  if ty = "f32" && source = "i64" then None
  else if signed_ then of_float ty (Int64.to_float (sign source x))
  else if source = "i32" then of_float ty (Int64.to_float (Int64.logand x 0xffffffffL))
  else None

let fold_op { opcode = o; ty; source; imm } args =
  match o, args with
  | "const", [] when String.length imm > 5 -> Some (bits_of (String.sub imm 5 (String.length imm -
    5)))
  | "uextend", [x] -> Some (Int64.logand x (mask source))
  | "sextend", [x] -> Some (Int64.logand (sign source x) (mask ty))
  | ("wrap" | "bitcast"), [x] -> Some (Int64.logand x (mask ty))
  | "float_from_sint", [x] -> from_int ty source true x
  | "float_from_uint", [x] -> from_int ty source false x
  | "fpromote", [x] -> of_float "f64" (float_of "f32" x)
  | "fdemote", [x] -> of_float "f32" (float_of "f64" x)
  | "ref_is_null", [x] -> bit (x = 0L)
  | "select", [c; a; b] ->
    Some (Int64.logand (if Int64.logand c (mask source) <> 0L then a else b) (mask ty))
  | _, [x] -> if ty.[0] = 'f' then float_unary o ty x else int_unary o ty x
  | _, [x; y] -> if ty.[0] = 'f' then float_binary o ty x y else int_binary o ty x y
  | _ -> None

let pick n args = match (op n).opcode, args with
  | "br_if", [c] -> if c <> 0L then 0 else 1
  | "switch", [c] -> if ucmp c 0x3fffffffL > 0 then 0x3fffffff else Int64.to_int c
  | "assume", [c] ->
    (match String.split_on_char ':' (op n).imm with
     | ["assumed"; bits; _] when bits_of bits = c -> 0 | _ -> 1)
  | _ -> 0
let asks b o z = (op b).opcode = "br_if" && (op o).opcode = "ne" && z = 0L

(* ** Types *)

let type_codes : (string, int) Hashtbl.t = Hashtbl.create 16
let type_code name =
  match Hashtbl.find_opt type_codes name with
  | Some n -> n
  | None -> let n = 1 + Hashtbl.length type_codes in Hashtbl.add type_codes name n; n
let memory_type = type_code "memory"
let no_type = 0
let ints = set ["i8"; "i16"; "i32"; "i64"]
let floats = set ["f32"; "f64"]
let compares = set [
  "eqz"; "eq"; "ne"; "slt"; "sle"; "sgt"; "sge"; "ult"; "ule"; "ugt"; "uge"; "sadd_overflows";
  "ssub_overflows"; "smul_overflows"; "feq"; "fne"; "flt"; "fle"; "fgt"; "fge"; "ref_is_null";
  "ref_eq"; "memory_size"; "table_size"]
let stores = ["store", 0; "store8", 1; "store16", 2; "store32", 4]
let loads = ["load", 0; "uload8", 1; "sload8", 1; "uload16", 2; "sload16", 2; "uload32", 4;
  "sload32", 4]
(* The type of the result of an operation without effect, or of a write: a memory. *)
let result_type o =
  if is compares o.opcode then "i32"
  else if List.mem_assoc o.opcode stores || o.opcode = "global_set" then "memory"
  else match o.opcode with "ref_bits" -> "i64" | "ref_of" -> "ref" | _ -> o.ty

let int_unary_names = set ["clz"; "ctz"; "popcnt"; "sext8"; "sext16"; "sext32"; "eqz"]
let int_binary_names = set [
  "add"; "sub"; "mul"; "sdiv"; "udiv"; "srem"; "urem"; "and"; "or"; "xor"; "shl"; "sshr"; "ushr";
  "rotl"; "rotr"; "eq"; "ne"; "slt"; "sle"; "sgt"; "sge"; "ult"; "ule"; "ugt"; "uge";
  "sadd_overflows"; "ssub_overflows"; "smul_overflows"]
let float_unary_names = set ["fabs"; "fneg"; "fceil"; "ffloor"; "ftrunc"; "fnearest"; "fsqrt"]
let float_binary_names = set [
  "fadd"; "fsub"; "fmul"; "fdiv"; "fmin"; "fmax"; "fcopysign"; "feq"; "fne"; "flt"; "fle"; "fgt";
    "fge"]

let split c s = String.split_on_char c s
(* The memory, the offset and the width of addresses of an access. *)
let address imm = match split ':' imm with
  | ["address"; m; o] -> Some (int_of_string m, bits_of o, 32)
  | ["host"; m; o] -> Some (int_of_string m, bits_of o, 64)
  | _ -> None
let address_type imm = match address imm with Some (_, _, 32) -> "i32" | Some _ -> "i64" | None ->
  ""

(* Whether an operation takes operands of these types; memory is the last operand of accesses. *)
let well_typed { opcode = o; ty; imm; _ } args =
  let t = ty in
  match args with
  | [] -> o = "const" || o = "call_pure"
  | [a] when is int_unary_names o -> a = t && is ints t
  | [a; b] when is int_binary_names o -> a = t && b = t && is ints t
  | [a] when is float_unary_names o -> a = t && is floats t
  | [a; b] when is float_binary_names o -> a = t && b = t && is floats t
  | [a] when o = "sextend" || o = "uextend" -> is ints a && is ints t && width a < width t
  | [a] when o = "wrap" -> is ints a && is ints t && width a > width t
  | [a] when o = "float_from_sint" || o = "float_from_uint" -> (a = "i32" || a = "i64")
    && is floats t
  | [a] when is converting o && o <> "select" -> (is floats a || is ints a)
    && (is floats t || is ints t)
  | [c; a; b] when o = "select" -> is ints c && a = t && b = t
  | [a] when o = "ref_is_null" -> a = t
  | ["ref"; "ref"] -> o = "ref_eq"
  | [a; "memory"] when List.mem_assoc o loads -> a = address_type imm
  | [a; v; "memory"] when List.mem_assoc o stores -> a = address_type imm && v = t
  | [v; "memory"] when o = "global_set" -> v = t
  | ["memory"] -> List.mem o ["memory_size"; "table_size"; "global_get"; "call_reads"]
  | [a; "memory"] when o = "table_get" -> a = "i32"
  | [a; "memory"] when o = "ref_bits" -> a = "ref"
  | [a; "memory"] when o = "ref_of" -> a = "i64"
  | _ -> o = "call_pure" || o = "call_reads"

(* ** Places *)

let rec z_pos n =   (* n is not zero, and unsigned *)
  let half = Int64.shift_right_logical n 1 in
  if n = 1L then XH
  else if Int64.logand n 1L = 1L then XI (z_pos half) else XO (z_pos half)
let z_of n = if n = 0L then Z0 else Zpos (z_pos n)
let z_int n = z_of (Int64.of_int n)

let bytes o n imm = match address imm with
  | None -> None
  | Some (m, offset, w) ->
    let len = if n = 0 then width o.ty / 8 else n in
    let last = Int64.add offset (Int64.of_int (len - 1)) in
    let top = if w = 64 then -1L else 0xffffffffL in
    if len > 0 && ucmp last offset >= 0 && ucmp last top <= 0
    then Some (Bytes (m, z_of offset, z_int len, z_int w)) else None
let numbered imm = match split ':' imm with [_; n] -> int_of_string_opt n | _ -> None
let read_place o = match List.assoc_opt o.opcode loads with
  | Some n -> bytes o n o.imm
  | None ->
    match o.opcode, numbered o.imm with
    | "memory_size", Some m -> Some (Cell (3 * m))
    | "global_get", Some g -> Some (Cell (3 * g + 1))
    | ("ref_bits" | "ref_of"), _ -> Some (Cell 2)
    | _ -> None
let written_place o = match List.assoc_opt o.opcode stores with
  | Some n -> bytes o n o.imm
  | None -> match o.opcode, numbered o.imm with "global_set", Some g -> Some (Cell (3 * g + 1))
    | _ -> None
let gives_back w r =
  w.ty = r.ty && (w.opcode = "store" && r.opcode = "load" || w.opcode = "global_set" && r.opcode =
    "global_get")

(* ** The language *)

let arith_of o =
  if not (is ints o.ty) then None else
  match o.opcode with
  | "add" -> Some (AAdd, z_int (width o.ty))
  | "sub" -> Some (ASub, z_int (width o.ty))
  | "const" -> Some (AConst, z_int (width o.ty))
  | _ -> None
let rec int_of_pos = function XH -> 1 | XO p -> 2 * int_of_pos p | XI p -> 2 * int_of_pos p + 1
let int_type = function
  | Zpos p -> type_code ("i" ^ string_of_int (int_of_pos p))
  | _ -> no_type

(* Answers about operations are kept by number. *)
let kept f =
  let h = Hashtbl.create 64 in
  fun (n : int) -> match Hashtbl.find_opt h n with
    | Some x -> x | None -> let x = f (op n) in Hashtbl.add h n x; x

(* ** Traps *)

let dividing = set ["udiv"; "urem"; "sdiv"; "srem"]
let access_bytes o = match List.assoc_opt o.opcode loads with
  | Some n -> Some n | None -> List.assoc_opt o.opcode stores
let traps o =
  access_bytes o <> None || is dividing o.opcode
  || List.mem o.opcode ["sint_from_float"; "uint_from_float"; "table_get"]
(* A division by a constant other than 0, and other than -1 if the quotient may overflow. *)
let safe_division o ks = match ks with
  | [_; Some d] when is dividing o.opcode ->
    d <> 0L && (o.opcode <> "sdiv" || d <> mask o.ty)
  | _ -> false
(* In a linear memory, an access that ends later vouches for one that ends earlier.
  In a host memory,
   an access vouches for bytes of its own. *)
let range o = match access_bytes o, address o.imm with
  | Some n, Some (m, offset, w) ->
    let len = if n = 0 then width o.ty / 8 else n in
    if w = 32 && ucmp offset 0xffffffffL > 0 then None else Some (m, offset, len, w)
  | _ -> None
let reaches o o' = match range o, range o' with
  | Some (m, a, n, w), Some (m', b, n', w') ->
    let ahead = Int64.sub b a in
    m = m' && w = w' &&
    (if w = 32 then Int64.compare (Int64.add b (Int64.of_int n')) (Int64.add a (Int64.of_int n))
      <= 0
     else Int64.compare ahead 0L >= 0
          && Int64.compare ahead (Int64.of_int n) <= 0
          && Int64.to_int ahead + n' <= n)
  | _ -> false
(* The number of operands that have to be equal. *)
let vouch n n' =
  let o = op n and o' = op n' in
  if access_bytes o <> None then (if reaches o o' then Some 1 else None)
  else if n = n' && o.opcode <> "table_get" then Some 3
  else if n = n' then Some 1
  else None
let trap_lang = {
  can_trap = kept traps; safe = (fun n ks -> safe_division (op n) ks); vouch }

(* The types of the results of effects are those of the text. *)
let effect_types : (int * int, int) Hashtbl.t = Hashtbl.create 64
let note_effect o n t = if not (Hashtbl.mem effect_types (o, n)) then Hashtbl.add effect_types (o,
  n) t

let type_name code =
  let found = ref "" in
  Hashtbl.iter (fun name n -> if n = code then found := name) type_codes;
  !found
let lang rule_ok = {
  op_eqb = (fun (a : int) b -> a = b); ceqb = Int64.equal;
  comm = kept (fun o -> is commuting o.opcode);
  fold = (fun n args -> fold_op (op n) args); pick; asks;
  rty = kept (fun o -> type_code (result_type o));
  signed = (fun n types -> well_typed (op n) (List.map type_name types));
  ety = (fun o n -> try Hashtbl.find effect_types (o, n) with Not_found -> no_type);
  arith_of = kept arith_of; int_type; zc = z_of;
  reads = kept read_place; writes = kept written_place;
  gives_back = (fun w r -> gives_back (op w) (op r));
  rule_ok }
