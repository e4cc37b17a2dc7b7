(* Computes the claims that the kernel checks: live blocks, dominators, homes of leaves, leaves that
   agree. Nothing here is trusted. A wrong claim makes the kernel refuse. *)
open Kernel

module R = Reader
exception Outside of string
let nowhere = max_int / 4

(* A table from numbers to claims, with an answer for numbers beyond it. *)
let filled n default pairs =
  let a = Array.make n default in
  List.iter (fun (i, x) -> if i < n then a.(i) <- x) pairs;
  fun i -> if i < n then Array.unsafe_get a i else default

let rec tree a lo hi =
  if lo >= hi then Leaf
  else let m = (lo + hi) / 2 in Node (tree a lo m, a.(m), tree a (m + 1) hi)
let set_of l = let a = Array.of_list (List.sort_uniq compare l) in tree a 0 (Array.length a)

let rec union a b = match a, b with
  | [], l | l, [] -> l
  | x :: a', y :: b' ->
    if x = y then x :: union a' b' else if x < y then x :: union a' b else y :: union a b'

(* ** Terms *)

let reads opcode = Lang.is Lang.readers opcode
let kind_of ~results ~nparams ~type_of (kind : string list) = match kind with
  | ["argument"; k] -> KArg (int_of_string k)
  | ["memory-at-entry"] -> KArg nparams
  | ["param"] | ["memory-param"] -> KParam
  | ["result"; i; k] -> KRes (int_of_string i, int_of_string k)
  | ["memory-after"; i] -> let i = int_of_string i in KRes (i, results i)
  | ["op"; o; ty; imm; a] ->
    let args = if a = "-" then [] else List.map int_of_string (String.split_on_char ',' a) in
    let source = match args with x :: _ -> type_of x | [] -> "" in
    KOp (Lang.key o ty source imm, args)
  | _ -> raise (Outside "a kind of term")

(* [op_at] gives the operations of terms, and [t] is the term that the reason is for. *)
let reason op_at t by =
  let id w = int_of_string w in
  let via w = if w = "-" then None else Some (id w) in
  match String.split_on_char ':' by with
  | ["itself"] -> ByItself
  | ["folding"] -> ByFold
  | ["sum"; r] -> BySum (id r)
  | ["apart"; a; b; r] -> ByApart (via a, via b, id r)
  | ["stored"; a; b] -> ByStored (via a, via b)
  | ["covers"; r] -> ByCovers (id r)
  | ["swaps"; a; b; i; r] -> BySwaps (via a, via b, id i, id r)
  | ["merged"; reads] ->
    ByMerged (if reads = "-" then [] else List.map id (String.split_on_char ',' reads))
  | ["rule"; name; swapped; inner; result] ->
    let inner = if inner = "-" then [] else List.map id (String.split_on_char ',' inner) in
    (* Not every rule needs a result. One that is named has to come earlier; no sum is of itself. *)
    if List.exists (fun r -> r >= t) (Option.to_list (via result)) then BySum t
    else ByRule (Rules.cite op_at t
      { Rules.cited = name; swapped = id swapped; named = inner; result = via result })
  | _ -> raise (Outside ("the reason " ^ by))

(* The merged reads that the class of each term rests on. *)
let merged_reads terms =
  let n = Array.length terms in
  let rests = Array.make n [] in
  let of_via = function Some u when u < n -> rests.(u) | _ -> [] in
  let of_term u = if u < n then rests.(u) else [] in
  Array.iteri (fun t term ->
    rests.(t) <- (match term.tb with
      | ByMerged _ -> [t]
      | ByApart (a, b, r) -> union (of_term r) (union (of_via a) (of_via b))
      | ByStored (a, b) -> union (of_via a) (of_via b)
      | ByCovers r | BySum r -> of_term r
      | BySwaps (a, b, i, r) -> union (union (of_term i) (of_term r)) (union (of_via a) (of_via b))
      | ByItself | ByFold | ByRule _ -> [])) terms;
  rests

let leaves_below terms =
  let n = Array.length terms in
  let deps = Array.make n [] in
  Array.iteri (fun i t -> match t.tk with
    | KOp (_, args) ->
      deps.(i) <- List.fold_left (fun l a ->
        if a >= i then l else
        match terms.(a).tk with
        | KOp _ -> if deps.(a) == l then l else union l deps.(a)
        | _ -> union l [a]) [] args
    | _ -> ()) terms;
  deps

let table (pair : R.pair) ~results ~nparams =
  let raw = Array.of_list (List.rev pair.terms) in
  let n = Array.length raw in
  let type_of i = if i < n then raw.(i).tty else "" in
  let kinds = Array.map (fun (t : R.term) -> kind_of ~results ~nparams ~type_of t.kind) raw in
  let op_at t = if t >= n then None else
    match kinds.(t) with KOp (o, a) -> Some (o, a) | _ -> None in
  let terms = Array.mapi (fun i (t : R.term) ->
    { tk = kinds.(i); tc = t.cls; ty = Lang.type_code t.tty; tb = reason op_at i t.by }) raw in
  let deps = leaves_below terms and rests = merged_reads terms in
  { tn = n; tg = (fun i -> terms.(i)); deps = (fun i -> if i < n then deps.(i) else []);
    mdep = (fun i -> if i < n then rests.(i) else []) }

(* ** Versions *)

(* The numbers of values: those of the file, then memory at the start of each block, then memory
   behind each instruction. *)
type numbering = { values : int; blocks : int }
let memory_of_block num b = num.values + b
let memory_behind num i = num.values + num.blocks + i

type side = {
  v : code version;
  named : int;                                 (* the values of the file have lower numbers *)
  type_of : int -> string option;              (* of a value that the text defines *)
  place : (int, int * int) Hashtbl.t;          (* of instructions *)
  memory_before : (int, int) Hashtbl.t;
  blks : code blk array;
  vouchers : int -> int;                       (* by value, one that vouches for its operation *)
  (* operations that may trap, by first operand *)
  sites : int list -> (int * code * int list) list;
  post : int list;                             (* the live blocks, exits first *)
  idom : int array;
  leaves_of : int list array;                  (* the leaves that a block binds *)
  results_of : (int * int) list array }        (* the results of effects in a block, with places *)

let bound f l = List.fold_left (fun m x -> max m (f x + 1)) 0 l
let all_insts blocks = List.concat_map (fun (b : R.block) -> b.insts) blocks

let numbering blocks =
  let insts = all_insts blocks in
  let of_typed l = bound fst l in
  let values = List.fold_left (fun m (b : R.block) -> max m (of_typed b.params)) 0 blocks in
  let values = List.fold_left (fun m (i : R.inst) -> max m (of_typed i.results)) values insts in
  { values; blocks = List.length blocks }

type building = {
  num : numbering; index : int -> int; term_of : int array; def : (int * int) array;
  written : (int, int) Hashtbl.t; type_of_value : (int, string) Hashtbl.t;
  at : (int, int * int) Hashtbl.t; before : (int, int) Hashtbl.t;
  result_term : int -> int -> int; nres : int -> int }

let set_term bld v t = if v < Array.length bld.term_of then bld.term_of.(v) <- t
let define bld v place = bld.def.(v) <- place

let op_of bld (x : R.inst) =
  let source = match x.args with
    | a :: _ -> (try Hashtbl.find bld.type_of_value a with Not_found -> "") | [] -> "" in
  Lang.key x.opcode x.ty source x.imm

(* One instruction of a body, and the memory behind it. *)
let body_inst bld b k memory (x : R.inst) =
  let o = op_of bld x in
  match Hashtbl.find_opt bld.written x.id with
  | Some t ->
    let m = memory_behind bld.num x.id in
    set_term bld m t; define bld m (b, k + 1);
    (IPure (x.id, m, o, x.args @ [memory]), m)
  | None when Lang.is Lang.effects x.opcode ->
    let results = List.map fst x.results in
    let types = List.map (fun (_, t) -> Lang.type_code t) x.results
      @ (if Lang.keeps_memory x.opcode then [] else [Lang.memory_type]) in
    let o = Lang.effect_of x.opcode x.ty x.imm types in
    List.iter (fun r -> define bld r (b, k + 1)) results;
    if Lang.keeps_memory x.opcode then (IEff (x.id, o, x.args @ [memory], results), memory)
    else begin
      let m = memory_behind bld.num x.id in
      set_term bld m (bld.result_term x.id (bld.nres x.id)); define bld m (b, k + 1);
      (IEff (x.id, o, x.args @ [memory], results @ [m]), m)
    end
  | None ->
    match x.results with
    | [(r, _)] ->
      define bld r (b, k + 1);
      (IPure (x.id, r, o, if reads x.opcode then x.args @ [memory] else x.args), memory)
    | _ -> raise (Outside ("the operation " ^ x.opcode))

let terminator bld memory (x : R.inst) =
  let edge (t, a) = { dst = bld.index t; ea = a @ [memory] } in
  let shown = match x.opcode with
    | "jump" -> [] | "br_if" | "switch" | "assume" | "leave" -> x.args | _ -> x.args @ [memory] in
  (* An assumption leads to blocks of its own (assume.ml), without a claim about their memory. *)
  if x.opcode = "assume" then
    List.iter (fun (t, _) -> set_term bld (memory_of_block bld.num (bld.index t))
      bld.term_of.(memory)) x.targets;
  { li = x.id; lo = op_of bld x; la = shown; les = List.map edge x.targets }

let block bld b (raw : R.block) =
  let params = List.map fst raw.params @ [memory_of_block bld.num b] in
  List.iter (fun p -> define bld p (b, 0)) params;
  let memory = ref (memory_of_block bld.num b) and body = ref [] and last = ref None and k = ref 0
    in
  List.iter (fun (x : R.inst) ->
    Hashtbl.replace bld.at x.id (b, !k); Hashtbl.replace bld.before x.id !memory;
    if Lang.is Lang.terminators x.opcode then last := Some (terminator bld !memory x)
    else begin
      let (i, m) = body_inst bld b !k !memory x in
      body := i :: !body; memory := m; incr k
    end) raw.insts;
  let body = Array.of_list (List.rev !body) in
  match !last with
  | Some lt -> { ps = params; bn = Array.length body; bi = (fun k -> body.(k)); lt }
  | None -> raise (Outside "a block without an end")

(* Immediate dominators (Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm"). *)
let dominators n succ =
  let order = Array.make n (-1) and post = ref [] and next = ref 0 in
  let seen = Array.make n false in
  let rec visit b = if not seen.(b) then begin
      seen.(b) <- true; List.iter visit (succ b);
      order.(b) <- !next; incr next; post := b :: !post end in
  visit 0;
  let preds = Array.make n [] in
  List.iter (fun b -> List.iter (fun s -> preds.(s) <- b :: preds.(s)) (succ b)) !post;
  let idom = Array.make n (-1) in
  idom.(0) <- 0;
  let rec meet a b = if a = b then a
    else if order.(a) < order.(b) then meet idom.(a) b else meet a idom.(b) in
  let changed = ref true in
  while !changed do
    changed := false;
    List.iter (fun b -> if b <> 0 then
      match List.filter (fun p -> idom.(p) >= 0) preds.(b) with
      | [] -> ()
      | p :: r ->
        let d = List.fold_left meet p r in
        if idom.(b) <> d then begin idom.(b) <- d; changed := true end) !post
  done;
  (seen, idom, preds, !post)

let sole_of preds b = match List.sort_uniq compare preds.(b) with [p] -> Some p | _ -> None

(* The first in preorder of the blocks with parameters of a leaf: it dominates the others. *)
let find_homes tbl blks order tm idom =
  let home = Array.make tbl.tn nowhere in
  let rec above h b = h = b || (b <> 0 && above h idom.(b)) in
  List.iter (fun b -> List.iter (fun p ->
    let t = tm p in
    if t < tbl.tn && (tbl.tg t).tk = KParam then
      if home.(t) = nowhere || above b home.(t) then home.(t) <- b) blks.(b).ps) order;
  home

(* The merged reads of the memory that each block binds. *)
let merged_by_block tbl n home =
  let by_block = Array.make n [] in
  for t = 0 to tbl.tn - 1 do
    match tbl.tg t with
    | { tk = KOp (_, (_ :: _ as args)); tb = ByMerged _; _ } ->
      let m = List.nth args (List.length args - 1) in
      if m < tbl.tn && home.(m) < n then by_block.(home.(m)) <- t :: by_block.(home.(m))
    | _ -> ()
  done;
  fun b -> if b < n then by_block.(b) else []

(* A value of each leaf: the parameter or result that binds it. *)
let holders tbl blks order tm =
  let held = Array.make tbl.tn nowhere in
  let hold above x =
    let t = tm x in
    if t < tbl.tn && (held.(t) = nowhere || above) then
      match (tbl.tg t).tk with KOp _ -> () | _ -> held.(t) <- x in
  List.iter (fun b ->
    List.iter (hold false) blks.(b).ps;
    for k = 0 to blks.(b).bn - 1 do
      match blks.(b).bi k with IEff (_, _, _, r) -> List.iter (hold false) r | IPure _ -> ()
    done) order;
  fun t -> if t < tbl.tn then held.(t) else nowhere

let build_side (pair : R.pair) side tbl lang ~nres ~result_term =
  let raw = List.rev_map (fun (b : R.block) -> { b with insts = List.rev b.insts })
      pair.versions.(side).blocks in
  let num = numbering raw in
  let positions = Hashtbl.create 64 in
  List.iteri (fun i (b : R.block) -> Hashtbl.replace positions b.block i) raw;
  let index b = try Hashtbl.find positions b with Not_found -> raise (Outside "an unknown block") in
  let size = memory_behind num (bound (fun (i : R.inst) -> i.id) (all_insts raw)) in
  let missing = tbl.tn + 1 in
  let bld = { num; index; term_of = Array.make size missing; def = Array.make size (nowhere, 0);
              written = Hashtbl.create 64; type_of_value = Hashtbl.create 64; nres;
              at = Hashtbl.create 64; before = Hashtbl.create 64; result_term } in
  List.iter (fun (b : R.block) ->
    let note (v, t) = Hashtbl.replace bld.type_of_value v t in
    List.iter note b.params;
    List.iter (fun (i : R.inst) -> List.iter note i.results) b.insts) raw;
  let own l = List.filter (fun (s, _, _) -> s = side) l in
  List.iter (fun (_, v, t) -> if v < num.values then set_term bld v t) (own pair.values);
  List.iter (fun (_, b, t) -> match Hashtbl.find_opt positions b with
    | Some i -> set_term bld (memory_of_block num i) t | None -> ()) (own pair.memories);
  List.iter (fun (_, i, t) -> Hashtbl.replace bld.written i t) (own pair.writes);
  let blks = Array.of_list (List.mapi (block bld) raw) in
  let n = Array.length blks in
  if n = 0 then raise (Outside "a version without blocks");
  let tm x = if x < size then bld.term_of.(x) else missing in
  let dl x = if x < size then bld.def.(x) else (nowhere, 0) in
  let eloc i = try Hashtbl.find bld.at i with Not_found -> (nowhere, 0) in
  let claimed = { fn = n; fb = (fun b -> blks.(b)); tm; lv = (fun _ -> true); doms = (fun _ -> []);
                  dl; sole = (fun _ -> None); home = (fun _ -> nowhere); eloc;
                  mreads = (fun _ -> []); holder = (fun _ -> missing) } in
  let succ = Array.map (fun b -> List.map (fun e -> e.dst) (live_edges lang tbl claimed b.lt))
    blks in
  let (live, idom, preds, order) = dominators n (fun b -> succ.(b)) in
  let home = find_homes tbl blks order tm idom in
  let doms = Array.make n [] in
  List.iter (fun b -> doms.(b) <- if b = 0 then [0] else b :: doms.(idom.(b))) order;
  let sole = Array.init n (sole_of preds) in
  let v = { claimed with lv = (fun b -> b < n && live.(b)); doms = (fun b -> if b < n then doms.(b)
    else []);
            sole = (fun b -> if b < n then sole.(b) else None);
            home = (fun t -> if t < tbl.tn then home.(t) else nowhere);
            mreads = merged_by_block tbl n home; holder = holders tbl blks order tm } in
  let leaves_of = Array.make n [] and results_of = Array.make n [] in
  Array.iteri (fun t b -> if b < n then leaves_of.(b) <- t :: leaves_of.(b)) home;
  for t = 0 to tbl.tn - 1 do
    (* A leaf that no value has need not agree: a table may name a result twice. *)
    if v.holder t <> nowhere then match (tbl.tg t).tk with
    | KRes (i, _) -> let (b, k) = eloc i in if b < n then results_of.(b) <- (k, t) :: results_of.(b)
    | KArg _ -> leaves_of.(0) <- t :: leaves_of.(0)
    | _ -> ()
  done;
  { v; named = num.values; type_of = Hashtbl.find_opt bld.type_of_value; place = bld.at;
    memory_before = bld.before; blks;
    vouchers = (fun _ -> nowhere); sites = (fun _ -> []); post = List.rev order; idom; leaves_of;
    results_of }

(* ** Both versions *)

(* Whether the terms of values have their types. The theorem takes arguments of the types that the
   table gives them ([args_typed]), so the table must not give them others than the versions do. *)
let values_typed (pair : R.pair) =
  let terms = Array.of_list (List.rev pair.terms) in
  let type_of t = if t < Array.length terms then terms.(t).R.tty else "" in
  let declared = Array.map (fun (s : R.side) ->
    let types = Hashtbl.create 64 in
    let note (v, t) = Hashtbl.replace types v t in
    List.iter (fun (b : R.block) -> List.iter note b.params) s.blocks;
    List.iter (fun (i : R.inst) -> List.iter note i.results) (all_insts s.blocks);
    types) pair.versions in
  List.for_all (fun (side, v, t) -> Hashtbl.find_opt declared.(side) v = Some (type_of t))
    pair.values

(* The leaves that a version has before a place. *)
let leaves_at side (b, k) =
  let rec go b k acc =
    let acc = List.rev_append side.leaves_of.(b) acc in
    let acc = List.fold_left (fun acc (j, t) -> if j < k then t :: acc else acc)
      acc side.results_of.(b) in
    if b = 0 then acc else go side.idom.(b) max_int acc in
  if b < Array.length side.blks && (b = 0 || side.idom.(b) >= 0) then go b k [] else []

let both a b =
  let h = Hashtbl.create 64 in
  List.iter (fun x -> Hashtbl.replace h x ()) a;
  List.filter (fun x -> Hashtbl.mem h x) b

(* The first term `ne x 0` of each class. *)
let asked_terms tbl =
  let h = Hashtbl.create 16 in
  for t = tbl.tn - 1 downto 0 do
    match (tbl.tg t).tk with
    | KOp (Binary (BNe, _), [_; _]) -> Hashtbl.replace h (tbl.tg t).tc t
    | _ -> ()
  done;
  fun c -> Hashtbl.find_opt h c
