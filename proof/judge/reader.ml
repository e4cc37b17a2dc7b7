(* Reads the files that `osier opt --emit mapping` writes (docs/certificates.md), one pair of
   versions after the other. What is read is a claim, and nothing of it is believed. *)

exception Bad of int * string

type inst = { id : int; opcode : string; ty : string; imm : string; args : int list;
              results : (int * string) list; targets : (int * int list) list }
type block = { block : int; params : (int * string) list; mutable insts : inst list }
type term = { tty : string; cls : int; by : string; kind : string list }
type operand = V of int | S of int
type step = { op : string; sty : string; operand_ty : string; bits : string;
              operands : operand list; here : int option; far : int option }
type replay = { rop : string; rty : string; rimm : string; roperands : operand list;
                rterm : int option }
(* An activation that an entry out of inlined code lands in. *)
type frame = { func : int; fversion : string; within : bool; finst : int;
               fassigns : (int * operand) list }
type change = Same of int list * int list | Entry of entry
and entry = { source : int; target : int; kept : int list; mutable requires : int list option;
              mutable steps : step list; mutable replays : replay list;
              mutable assigns : (int * operand) list;
              mutable frames : frame list }      (* the outermost first, until all are read *)
type mapping = { direction : string; mutable changes : change list }
type side = { mutable blocks : block list }
type pair = { fname : string; fnumber : int option; label : string; versions : side array;
              mutable terms : term list; mutable values : (int * int * int) list;
              mutable memories : (int * int * int) list; mutable writes : (int * int * int) list;
              mutable anchors : int list;
              mutable ranges : int;             (* the claims about integers *)
              mutable mappings : mapping list }

(* The code of a function in a copy: its function, its version, and the instance and call that it
   is called from. *)
type instance = { ifunc : int; iversion : string; called : (int * int) option }
(* The claim about a copy, and the mappings across it. *)
type across = { aname : string; anumber : int option; mutable instances : instance list;
                mutable starts : (int * int * int) list; mutable across : mapping list }

type handler = { least : int -> int -> unit;    (* the pages of a memory, before all functions *)
                 func : string -> unit;         (* a function begins *)
                 pair : pair -> unit;           (* a pair of versions is complete *)
                 landing : pair -> unit;        (* so is a base with itself *)
                 copy : across -> unit;         (* so is a claim about a copy *)
                 header : string -> string -> unit }

type state = { h : handler; mutable line : int; mutable fname : string;
               mutable number : int option;
               sides : (string, side) Hashtbl.t; mutable reading : side option;
               mutable cur : pair option; mutable copy : across option; mutable landing : bool }

let bad st what = raise (Bad (st.line, what))
let int st w = match int_of_string_opt w with Some n when n >= 0 -> n | _ ->
  bad st ("bad number " ^ w)
let items w = if w = "-" then [] else String.split_on_char ',' w
let ints st w = List.map (int st) (items w)
let typed st w = match String.index_opt w ':' with
  | Some i -> (int st (String.sub w 0 i), String.sub w (i + 1) (String.length w - i - 1))
  | None -> bad st ("no type in " ^ w)
let after w = String.sub w 1 (String.length w - 1)
let operand st w =
  if w = "" then bad st "an operand is empty"
  else match w.[0] with
    | 'v' -> V (int st (after w)) | 's' -> S (int st (after w)) | _ -> bad st ("bad operand " ^ w)
let term_named st w = if w = "-" then None else Some (int st w)

(* 1(4,4),3(-) *)
let targets st w =
  let n = String.length w in
  let rec go i =
    if i >= n then [] else
    match String.index_from_opt w i '(' with
    | None -> bad st ("bad target " ^ w)
    | Some p ->
      match String.index_from_opt w p ')' with
      | None -> bad st ("bad target " ^ w)
      | Some q ->
        let t = (int st (String.sub w i (p - i)), ints st (String.sub w (p + 1) (q - p - 1))) in
        t :: go (q + 2) in
  if w = "-" then [] else go 0

let need st = match st.cur with Some p -> p | None -> bad st "the record has no pair of versions"
let side_no st = function "before" -> 0 | "after" -> 1 | w -> bad st ("unknown side " ^ w)
let finish st =
  (match st.cur with Some p -> if st.landing then st.h.landing p else st.h.pair p | None -> ());
  st.cur <- None
let find_side st name = match Hashtbl.find_opt st.sides name with
  | Some s -> s | None -> bad st ("unknown version " ^ name)
let open_pair st label one other =
  finish st;
  st.reading <- None;
  st.cur <- Some { fname = st.fname; fnumber = st.number; label;
                   versions = [| find_side st one; find_side st other |];
                   terms = []; values = []; memories = []; writes = []; anchors = [];
                   ranges = 0; mappings = [] }
(* The terms of a function without inlined code follow its two versions at once. *)
let open_plain st =
  if st.cur = None then
    if st.landing then open_pair st "landing" "base" "base" else open_pair st "-" "before" "after"

let claim st = match st.copy with
  | Some c -> c
  | None ->
    finish st;
    let c = { aname = st.fname; anumber = st.number; instances = []; starts = []; across = [] } in
    st.copy <- Some c; c
let mappings st = match st.copy with Some c -> c.across | None -> (need st).mappings
let last_mapping st = match mappings st with m :: _ -> m | [] -> bad st "no mapping"
let last_entry st = match (last_mapping st).changes with
  | Entry e :: _ -> e | _ -> bad st "the record belongs to no entry"

let record_version st words = match words, st.reading with
  | "block" :: b :: params, Some s ->
    s.blocks <- { block = int st b; params = List.map (typed st) params; insts = [] } :: s.blocks
  | ["inst"; id; opcode; ty; imm; args; results; tg], Some { blocks = b :: _ } ->
    b.insts <- { id = int st id; opcode; ty; imm; args = ints st args;
                 results = List.map (typed st) (items results); targets = targets st tg } :: b.insts
  | _ -> bad st "the record belongs to no version"

let record_claim st words =
  open_plain st;
  let p = need st in
  match words with
  | "term" :: _ :: tty :: cls :: by :: kind ->
    p.terms <- { tty; cls = int st cls; by; kind } :: p.terms
  | ["value"; s; v; t] -> p.values <- (side_no st s, int st v, int st t) :: p.values
  | ["memory"; s; b; t] -> p.memories <- (side_no st s, int st b, int st t) :: p.memories
  | ["write"; s; i; t] -> p.writes <- (side_no st s, int st i, int st t) :: p.writes
  | ["range"; s; b; t; low; high; _] ->
    let _ = side_no st s, int st b, int st t in
    if Int64.of_string_opt low = None || Int64.of_string_opt high = None then bad st "a bad bound";
    p.ranges <- p.ranges + 1
  | ["anchor"; i] -> p.anchors <- int st i :: p.anchors
  | _ -> bad st "malformed record"

(* 3=v13,4=s0 *)
let assign st w = match String.index_opt w '=' with
  | Some i ->
    (int st (String.sub w 0 i), operand st (String.sub w (i + 1) (String.length w - i - 1)))
  | None -> bad st ("no operand in " ^ w)
let open_entry st source target kept =
  let m = last_mapping st in
  m.changes <- Entry { source; target; kept; requires = None; steps = []; replays = [];
                       assigns = []; frames = [] } :: m.changes
let record_copy st words = match words with
  | ["instance"; _; func; version; caller; call; _] ->
    let c = claim st in
    let called = if caller = "-" then None else Some (int st caller, int st call) in
    c.instances <- { ifunc = int st func; iversion = version; called } :: c.instances
  | ["begins"; b; i; inst] ->
    let c = claim st in c.starts <- (int st b, int st i, int st inst) :: c.starts
  | ["mapping"; direction; _] ->
    let c = claim st in c.across <- { direction; changes = [] } :: c.across
  | _ -> bad st "malformed record"

let record_entry st words = match words with
  | ["same"; added; removed] ->
    let m = last_mapping st in m.changes <- Same (ints st added, ints st removed) :: m.changes
  | ["entry"; s; t; kept] -> open_entry st (int st s) (int st t) (ints st kept)
  | ["frames"; s; kept] -> open_entry st (int st s) max_int (ints st kept)
  | ["frame"; func; version; place; inst; a] ->
    let e = last_entry st in
    if e.target <> max_int then bad st "an entry within the function has no frames";
    e.frames <- { func = int st func; fversion = version; within = place = "within";
                  finst = int st inst; fassigns = List.map (assign st) (items a) } :: e.frames
  | ["requires"; vs] -> (last_entry st).requires <- Some (ints st vs)
  | ["step"; op; sty; operand_ty; bits; a; here; far] ->
    let e = last_entry st in
    e.steps <- { op; sty; operand_ty; bits; operands = List.map (operand st) (items a);
                 here = term_named st here; far = term_named st far } :: e.steps
  | ["replay"; _; rop; rty; rimm; a; t] ->
    let e = last_entry st in
    e.replays <- { rop; rty; rimm; roperands = List.map (operand st) (items a);
                   rterm = term_named st t } :: e.replays
  | ["assign"; v; o] ->
    let e = last_entry st in
    if e.target = max_int then bad st "frames have the assignments";
    e.assigns <- (int st v, operand st o) :: e.assigns
  | _ -> bad st "malformed record"

let start_function st name landing =
  finish st; Hashtbl.reset st.sides; st.fname <- name; st.number <- None;
  st.copy <- None; st.landing <- landing;
  if not landing then st.h.func name
let end_function st = match st.copy with
  | Some c -> st.copy <- None; st.h.copy c
  | None -> finish st

let record st line = match String.split_on_char ' ' line with
  | ["osier-mapping"; v] -> if v <> "3" then bad st ("the form has version " ^ v ^ ", not 3")
  | ["pipeline"; p] -> st.h.header "pipeline" p
  | ["level"; l] -> st.h.header "level" l
  | ["functions"; _] | ["landings"; _] | ("left-out" | "left-out-behind") :: _ -> ()
  | ["least"; memory; pages] when st.fname = "" -> st.h.least (int st memory) (int st pages)
  | "function" :: name -> start_function st (String.concat " " name) false
  | "landing" :: name -> start_function st (String.concat " " name) true
  | ["number"; n] when st.number = None && Hashtbl.length st.sides = 0 && st.fname <> "" ->
    st.number <- Some (int st n)
  | ["version"; name] ->
    let s = { blocks = [] } in Hashtbl.replace st.sides name s; st.reading <- Some s
  | ("block" | "inst") :: _ as w -> record_version st w
  | ["pair"; one; other] -> open_pair st (one ^ "-" ^ other) one other
  | ("term" | "value" | "memory" | "write" | "range" | "anchor") :: _ as w -> record_claim st w
  | "mapping" :: ("into" | "out") :: _ as w -> record_copy st w
  | ["mapping"; d; _] ->
    open_plain st;
    let p = need st in p.mappings <- { direction = d; changes = [] } :: p.mappings
  | ("instance" | "begins") :: _ as w -> record_copy st w
  | ["end"] -> end_function st
  | ("same" | "entry" | "frames" | "frame" | "requires" | "step" | "replay" | "assign") :: _ as w ->
    record_entry st w
  | _ -> bad st ("unknown record " ^ line)

let read h ic =
  let st = { h; line = 0; fname = ""; number = None; sides = Hashtbl.create 8; reading = None;
             cur = None; copy = None; landing = false } in
  try
    while true do
      let line = input_line ic in
      st.line <- st.line + 1;
      record st line
    done
  with End_of_file -> if st.line = 0 then bad st "the file is empty"
