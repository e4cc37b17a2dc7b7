(* Reads a mapping and prints the verdicts. *)
open Judge

let () =
  if Array.exists ((=) "--rules") Sys.argv then begin Rules.print (); exit 0 end;
  (match Sys.argv with
   | [| _; "--fold"; least |] -> Fold.run (int_of_string least); exit 0
   | _ -> ());
  let h = { R.func = Copies.func; pair = Copies.pair; landing = Copies.landing;
            copy = Copies.copy; header = (fun k v -> if k = "level" then level := v) } in
  (try R.read h stdin; Copies.finish () with
   | R.Bad (line, what) -> Printf.eprintf "judge: line %d: %s\n" line what; exit 2
   | Failure what | Invalid_argument what -> Printf.eprintf "judge: malformed number: %s\n" what;
     exit 2);
  let all = List.sort compare (Hashtbl.fold (fun k n l -> (k, n) :: l) counts []) in
  List.iter (fun (k, n) -> Printf.printf "%-24s %d\n" k n) all
