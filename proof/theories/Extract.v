(** The checks as OCaml. Numbers become machine integers: the judge reads none above 2^62. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlNativeString.
From Osier Require Import Util Terms Places Memory Classes Version Paths Pair Entry.
From Osier Require Import Clean Live Main Traps Walk Owed Matched Landing Real.
From Osier Require Import Integers Operations Rules Matching Instance Copy Across Into Frames.
Extraction Language OCaml.
Extraction "kernel.ml" Classes.chk_table Terms.AL Version.chk_version Version.live_edges
  Version.chk_block Version.chk_first Classes.chk_term
  Paths.path Paths.crosses_all Pair.chk_pair Pair.chk_anchor Pair.chk_start Pair.chk_meet
    Pair.same_ops
  Pair.from Pair.aid Entry.chk_source Entry.chk_target Entry.steps_class Entry.chk_assign
  Entry.chk_entry Main.accept_pair Main.accept_entry Main.covers Clean.chk_clean Live.chk_live
    Owed.chk_traps Owed.cancel Owed.chk_owed Landing.chk_passed
  Traps.excused Walk.walk Walk.opens Owed.p_passed Owed.q_passed
  Entry.opcls Entry.fits_here Entry.fits_far Real.chk_fire
  Copy.chk_copy Copy.chk_copy_block Across.chk_steps Into.chk_place Into.chk_into_entry
  Frames.chk_land Frames.chain Frames.chk_out_entry Frames.waits_at
  Operations.osier_traps Operations.folded Operations.exact Rules.rows Instance.rule_lang.
