(* Judges exported mappings with the extracted kernel.

   usage: judge [--verdicts] [--why] < MAPPING
          judge --rules
          judge --fold LEAST < FOLDS

   Prints the number of entries by verdict, and with --verdicts a line for each entry: the function,
   the pair of versions, the direction, the level, the source point, and `accept`, `refuse CHECK` or
   `outside REASON`. --why tells the pairs that are not proved. --rules prints the rules. --fold
   compares results on constants (fold.ml). *)
open Kernel
module R = Reader
open Claims

let verdicts = Array.exists ((=) "--verdicts") Sys.argv
let why = Array.exists ((=) "--why") Sys.argv
let level = ref "-"
let counts : (string, int) Hashtbl.t = Hashtbl.create 16
let add key n = Hashtbl.replace counts key (n + try Hashtbl.find counts key with Not_found -> 0)

type direction = {
  p : side; q : side; k : claims; tbl : (code, citation) table; lang : (z, code, citation)
    lang;
  anch : int -> bool; past : int -> bool; ahead : int -> bool; need : int -> int -> set;
  lax : (int -> int -> set) Lazy.t;
  proved : bool; owing : owing; traps : bool }

(* ** The pair *)

let anchors_after d (b, i) =
  let blk = d.p.blks.(b) in
  let starts = if i < blk.bn then [(b, i + 1)]
    else List.map (fun e -> (e.dst, 0)) (live_edges d.lang d.tbl d.p.v blk.lt) in
  List.filter_map (fun (b, i) -> match from d.lang d.tbl d.anch d.p.v b i with
    | Some (_, (b, i)) -> aid d.p.v b i | None -> None) starts

(* Finds the anchors that runs may reach, and those whose step is not proved. *)
let explore d reached stopped =
  let known a = a < Array.length reached && reached.(a) in
  let work = ref [] in
  let mark l = List.filter (fun a -> if a < Array.length reached && not reached.(a)
                             then (reached.(a) <- true; true) else false) l in
  (match from d.lang d.tbl d.anch d.p.v 0 0 with
   | Some (_, (b, i)) -> (match aid d.p.v b i with Some a -> work := mark [a] | None -> ())
   | None -> ());
  while !work <> [] do
    let a = List.hd !work in
    work := List.tl !work;
    let fresh = mark (anchors_after d (fst (d.k.pos a))) in
    if known a && chk_anchor d.lang d.tbl d.anch d.p.v d.q.v d.k a then work := fresh @ !work
    else begin
      stopped.(a) <- true;
      List.iter (fun f -> reached.(f) <- false) fresh
    end
  done

(* Claims about the direction from [p] to [q]. [armed] gives the values that the entries from [q]
   require, by place. *)
let direction tbl lang anch agree nids (p, q) armed =
  let reached = Array.make nids false and stopped = Array.make nids false in
  let at side a = try Hashtbl.find side.place a with Not_found -> (nowhere, 0) in
  let get arr a = a < nids && arr.(a) in
  let k = { nids; agree; equal = (fun _ -> []); reached = get reached; stopped = get stopped;
            pos = (fun a -> (at p a, at q a)); asked = asked_terms tbl } in
  let none _ = true in
  let d = { p; q; k; tbl; lang; anch; past = none; ahead = none; need = (fun _ _ -> Leaf);
    lax = lazy (fun _ _ -> Leaf);
    proved = false; owing = Owed.none; traps = false } in
  explore d reached stopped;
  let stops = List.filter (fun a -> stopped.(a)) (List.init nids Fun.id) in
  let (past, ahead) = Flow.clean lang tbl p (List.map (fun a -> fst (at p a)) stops) in
  let need = Flow.needed lang tbl q armed in
  let proved = accept_pair lang tbl anch p.v q.v k may_trap past ahead need armed in
  let owing = Owed.claims lang tbl anch p q k in
  let traps = chk_traps lang tbl (Lang.traps ()) anch p.v q.v k owing in
  let lax = lazy (Shape.lax_need lang tbl q armed) in
  { d with past; ahead; need; lax; proved; owing; traps }

let explain (pair : R.pair) d =
  let bad_terms = List.filter (fun t -> not (chk_term d.lang d.tbl t)) (List.init d.tbl.tn Fun.id)
    in
  let blocks s = List.filter (fun b -> not (chk_block d.lang d.tbl d.anch s.v b))
      (List.init (Array.length s.blks) Fun.id) in
  let show l = String.concat "," (List.map string_of_int l) in
  let stops = List.filter (fun a -> d.k.stopped a) (List.init d.k.nids Fun.id) in
  if not d.proved || stops <> [] then
    Printf.printf
      "pair %s %s proved=%b table=%b terms=%s source=%b:%s target=%b:%s start=%b stopped=%s\n"
      pair.fname pair.label d.proved (chk_table d.lang d.tbl) (show bad_terms)
      (chk_version d.lang d.tbl d.anch d.p.v) (show (blocks d.p))
      (chk_version d.lang d.tbl d.anch d.q.v) (show (blocks d.q))
      (chk_start d.lang d.tbl d.anch d.p.v d.q.v d.k) (show stops)

(* ** Entries *)

(* The values that entries assign to themselves, as a set and as assignments. *)
type current = { mutable set : set; mutable map : operand map_ }

let operand = function R.V v -> Src v | R.S n -> Stp n
let insert_read set = function R.V v -> Flow.insert v set | R.S _ -> set

(* What an entry requires: the values that it reads, or those that a record lists. *)
let required (c : current) (e : R.entry) = match e.requires with
  | Some l -> set_of l
  | None ->
    let reads set = List.fold_left insert_read set in
    let set = List.fold_left (fun s (x : R.step) -> reads s x.operands) c.set e.steps in
    let set = List.fold_left (fun s (x : R.replay) -> reads s x.roperands) set e.replays in
    reads set (List.map snd e.assigns)

(* The required values in the order of the file, and the assigned ones. *)
let listed c (e : R.entry) = match e.requires with
  | Some l -> l
  | None -> Flow.elements (required c e) []
let assigned (c : current) (e : R.entry) =
  List.merge compare (List.sort compare (List.map fst e.assigns)) (Flow.elements c.set [])

let entry_of d (c : current) (e : R.entry) =
  let m0 = Hashtbl.find d.p.memory_before e.source and m1 = Hashtbl.find d.q.memory_before e.target
    in
  let step (s : R.step) =
    let imm = if s.op = "const" then "bits:" ^ s.bits else "-" in
    let source = match s.operands with [] -> "" | _ -> s.operand_ty in
    { so = Lang.key s.op s.sty source imm; sa = List.map operand s.operands; here = s.here;
      far = s.far } in
  let steps = List.rev_map step e.steps in
  let count = ref (List.length steps) and memory = ref (Src m0) in
  let replay (r : R.replay) =
    let s = { so = Lang.key r.rop r.rty "" r.rimm; sa = List.map operand r.roperands @ [!memory];
              here = r.rterm; far = None } in
    memory := Stp !count; incr count; s in
  let replays = List.map replay (List.rev e.replays) in
  let own = List.fold_left (fun m (v, o) -> Flow.put v (operand o) m) c.map e.assigns in
  { src = Hashtbl.find d.p.place e.source; tgt = Hashtbl.find d.q.place e.target;
    requires = Flow.insert m0 (required c e); steps = steps @ replays;
    assigns = Flow.put m1 !memory own }

(* The first check that an entry fails: for people, the kernel has refused it before. *)
let failed d e =
  let path s (b, k) = from d.lang d.tbl d.anch s.v b k in
  match path d.p e.src, path d.q e.tgt with
  | None, _ -> "source-reached"
  | _, None -> "target-point"
  | Some (csp, ap), Some (csq, aq) ->
    match aid d.p.v (fst ap) (snd ap) with
    | None -> "source-reached"
    | Some a ->
      if not (chk_source d.k a ap) then "source-reached"
      else if not (chk_target d.q.v d.k a aq csq e) then "target-point"
      else
        let bp = crosses_all d.tbl d.p.v [] csp and bq = crosses_all d.tbl d.q.v [] csq in
        match steps_class d.lang d.tbl d.p.v e bp e.steps [] with
        | None -> "step-term"
        | Some known ->
          let ok = chk_assign d.tbl d.p.v d.q.v d.k e bp a bq known in
          if not (each ok e.assigns) then "assign-value"
          else if not (d.past (fst e.src) && d.ahead (fst e.src)) then "anchors-proved"
          else "live-plus"

(* Whether no step of the entry traps. *)
let fires d e =
  let (here, far) = Flow.step_vouchers d.lang d.tbl d.anch d.p d.q e in
  chk_fire d.lang d.tbl (Lang.traps ()) d.anch d.p.v d.q.v d.k e here far

(* Whether the target version has not trapped before the landing point. *)
let passed d e = chk_passed d.lang d.tbl (Lang.traps ()) d.anch d.p.v d.q.v d.k d.owing e

(* Whether a version executes an operation that may trap, and whose result is a constant.
   `osier check` takes it for one that cannot trap; no theorem says so. *)
let folds_open d =
  let is_constant t = t < d.tbl.tn && match (d.tbl.tg t).tk with
    | KOp (Const _, []) -> true | _ -> false in
  let folds (s : side) = function
    | IPure (_, x, o, _) -> may_trap o && s.v.tm x < d.tbl.tn
      && is_constant (d.tbl.tg (s.v.tm x)).tc
    | IEff _ -> false in
  let in_block s b = List.exists (fun k -> folds s (b.bi k)) (List.init b.bn Fun.id) in
  List.exists (fun s -> Array.exists (in_block s) s.blks) [d.p; d.q]

(* Lines that are not printed yet. *)
let lines = ref (Buffer.create 4096)
let say_of name label direction source verdict =
  add verdict 1;
  if verdicts then
    Printf.bprintf !lines "%s %s %s %s %d %s\n" name label direction !level source verdict
let say (pair : R.pair) = say_of pair.fname pair.label

(* The accepted entries of a mapping, by source point. *)
type judged = { dir : direction; entries : (int, code entry) Hashtbl.t }

let judge_entry { dir = d; entries } texts pair name current (e : R.entry) =
  let verdict =
    if not d.proved then "refuse pair"
    else if not d.traps then "outside traps"
    else match entry_of d current e with
      | exception Not_found -> "refuse source-point"
      | x ->
        match Shape.odd_operands d.p e with
        | Some check -> "refuse " ^ check
        | None ->
        let accepted need =
          accept_entry d.lang d.tbl d.anch d.p.v d.q.v d.k d.past d.ahead need x in
        if not (accepted d.need) then
          (* No run comes behind an assumption that always fails. *)
          if Assume.has pair && not (d.p.v.lv (fst x.src)) then "outside assume"
          else match failed d x with
            | "live-plus" when accepted (Lazy.force d.lax) -> "outside unneeded-division"
            | check -> "refuse " ^ check
        else if not (passed d x) then
          (if folds_open d then "outside folded-trap" else "refuse trap-passed")
        else if not (fires d x) then "refuse step-trap"
        else match Shape.flaw (fst texts) (snd texts) (x.src, x.tgt) ~required:(listed current e)
                     ~kept:e.kept ~assigned:(assigned current e) with
          | None -> Hashtbl.replace entries e.source x; "accept"
          | Some check -> "refuse " ^ check in
  say pair name e.source verdict

let each_entry (m : R.mapping) f =
  let c = { set = Leaf; map = MLeaf } in
  List.iter (function
    | R.Same (added, removed) ->
      List.iter (fun v -> c.set <- Flow.insert v c.set; c.map <- Flow.put v (Src v) c.map) added;
      List.iter (fun v -> c.set <- Flow.remove v c.set; c.map <- Flow.drop v c.map) removed
    | R.Entry e -> f c e) (List.rev m.changes)

(* The values that the entries of the mappings from a version require, by place. One that is not
   available there does not count: such an entry is refused ([Shape.flaw]). *)
let armed_at side text mappings =
  let h = Hashtbl.create 64 in
  List.iter (fun m -> each_entry m (fun c e ->
    match Hashtbl.find_opt side.place e.source, Hashtbl.find_opt side.memory_before e.source with
    | Some place, Some m0 ->
      let has x = x = m0 || Shape.available text place x in
      let values = List.filter has (Flow.elements (Flow.insert m0 (required c e)) []) in
      Hashtbl.replace h place (set_of values)
    | _ -> ())) mappings;
  fun b k -> try Hashtbl.find h (b, k) with Not_found -> Leaf

(* Whether the table gives each argument the type that both versions give it. Runs take arguments of
   these types. *)
let arguments_typed (pair : R.pair) =
  let types (s : R.side) = match List.rev s.blocks with
    | b :: _ -> Array.of_list (List.map snd b.params) | [] -> [||] in
  let declared = types pair.versions.(0) in
  types pair.versions.(1) = declared
  && List.for_all (fun (t : R.term) -> match t.kind with
      | ["argument"; k] ->
        (match int_of_string_opt k with
         | Some k -> 0 <= k && k < Array.length declared && declared.(k) = t.tty
         | None -> false)
      | _ -> true) pair.terms

(* Both versions of a pair, and what directions between them share. *)
let sides (pair : R.pair) =
  let pair = Assume.split pair in
  let nres_table = Hashtbl.create 64 in
  Array.iter (fun (s : R.side) ->
    List.iter (fun (i : R.inst) -> Hashtbl.replace nres_table i.id (List.length i.results))
      (all_insts s.blocks))
    pair.versions;
  let nres i = try Hashtbl.find nres_table i with Not_found -> 0 in
  let nparams = match List.rev pair.versions.(0).blocks with b :: _ -> List.length b.params | [] ->
    0 in
  let tbl = table pair ~results:nres ~nparams in
  let by_result = Hashtbl.create 64 in
  for t = tbl.tn - 1 downto 0 do
    match (tbl.tg t).tk with KRes (i, n) -> Hashtbl.replace by_result (i, n) t | _ -> ()
  done;
  let result_term i n = try Hashtbl.find by_result (i, n) with Not_found -> tbl.tn + 1 in
  let lang = Lang.lang in
  let build side =
    let s = build_side pair side tbl lang ~nres ~result_term in
    Flow.vouchers lang tbl s in
  let before = build 0 in
  let after = build 1 in
  let nids = 1 + List.fold_left max 0 pair.anchors in
  let listed = Array.make nids false in
  List.iter (fun a -> listed.(a) <- true) pair.anchors;
  let anch a = a < nids && listed.(a) in
  let memo = Hashtbl.create 64 in
  let agree a = match Hashtbl.find_opt memo a with
    | Some s -> s
    | None ->
      let at side = try leaves_at side (Hashtbl.find side.place a) with Not_found -> [] in
      let s = set_of (both (at before) (at after)) in
      Hashtbl.replace memo a s; s in
  (tbl, lang, anch, agree, nids, before, after)

(* Judges the mappings of a pair. *)
let judge_pair (pair : R.pair) =
  (* The kernel takes edges to be dead for constants alone. *)
  if pair.ranges > 0 then raise (Outside "ranges");
  let (tbl, lang, anch, agree, nids, before, after) = sides pair in
  let text_before = Shape.text before and text_after = Shape.text after in
  List.map (fun (m : R.mapping) ->
    let is_forward = m.direction = "forward" in
    let (p, q) = if is_forward then (before, after) else (after, before) in
    let texts = if is_forward then (text_before, text_after) else (text_after, text_before) in
    let other (o : R.mapping) = o.direction <> m.direction in
    let armed = armed_at q (snd texts) (List.filter other pair.mappings) in
    let d = direction tbl lang anch agree nids (p, q) armed in
    if why then explain pair d;
    let judged = { dir = d; entries = Hashtbl.create 64 } in
    each_entry m (judge_entry judged texts pair m.direction);
    (m.direction, judged)) (List.rev pair.mappings)

(* What the kernel does not test of a pair, if it does not hold. *)
let flaw_of (pair : R.pair) =
  if not (Shape.anchors_same pair) then Some "anchor-same"
  else if not (Shape.leaves_typed pair) then Some "term-shape"
  else if not (values_typed pair && arguments_typed pair) then Some "value-term"
  else if not (Shape.memories_exist pair) then Some "memory-term"
  else None

let pair (pair : R.pair) =
  let all verdict = List.iter (fun (m : R.mapping) ->
    each_entry m (fun _ e -> say pair m.direction e.source verdict)) (List.rev pair.mappings) in
  match flaw_of pair with
  | Some check -> all ("refuse " ^ check); []
  | None -> try judge_pair pair with Outside reason -> all ("outside " ^ reason); []
