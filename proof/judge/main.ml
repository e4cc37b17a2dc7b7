(* Reads a mapping and prints the verdicts. *)
open Judge

let usage = "usage: judge-bin [--verdicts] [--why] <MAPPING    a line for each entry; why pairs fail
       judge-bin --rules                        the rows of Coq's rules
       judge-bin --fold LEAST <RESULTS          compares results of operations
A mapping is what `osier opt FILE --emit mapping` writes."

let () =
  (match List.tl (Array.to_list Sys.argv) with
   | ["--rules"] -> Rules.print (); exit 0
   | ["--fold"; least] when int_of_string_opt least <> None ->
     Fold.run (int_of_string least); exit 0
   | options when List.for_all (fun o -> o = "--verdicts" || o = "--why") options -> ()
   | ["--help"] -> print_endline usage; exit 0
   | _ -> prerr_endline usage; exit 2);
  let h = { R.func = Copies.func; pair = Copies.pair; landing = Copies.landing;
            copy = Copies.copy; header = (fun k v -> if k = "level" then level := v);
            least = (fun m n -> Hashtbl.replace Lang.least m (Lang.z_of (Int64.of_int n))) } in
  (try R.read h stdin; Copies.finish () with
   | R.Bad (line, what) -> Printf.eprintf "judge: line %d: %s\n" line what; exit 2
   | Failure what | Invalid_argument what -> Printf.eprintf "judge: malformed number: %s\n" what;
     exit 2);
  let all = List.sort compare (Hashtbl.fold (fun k n l -> (k, n) :: l) counts []) in
  List.iter (fun (k, n) -> Printf.printf "%-24s %d\n" k n) all
