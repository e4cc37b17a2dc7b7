(** The theorem about Osier's operations: [osier_right] and [osier_journey]. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Places Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Hops Traps Walk Owed Matched Real Journey Integers Bytes Operations
  Meaning Concrete.
From Osier Require Import Matching Instance Copy Across Into Frames Out.

Section Right.
Context {W : Type} (X : machine W) (run : fcode -> list Z -> option Z).
Notation L := (rule_lang run).
Notation M := (osier_sem X).
Hypothesis floats : FloatsFold run X.
Hypothesis sizes : SizesGrow X.
Lemma faithful : Faithful L M.
Proof. now apply osier_faithful. Qed.
Lemma trap_faithful : TrapFaithful osier_traps M (halts X).
Proof. now apply (osier_trap_faithful X). Qed.

Variables (T : table code citation) (anch : nat -> bool) (p q : version code) (K : claims).
Variables (Y : owing) (past ahead : nat -> bool) (need armed : nat -> nat -> set).
Notation calm := (calm L M T (halts X) anch nowhere).
Notation start := (start M T).
Hypothesis pair_ok : accept_pair L T anch p q K may_trap past ahead need armed = true.
Hypothesis traps_ok : chk_traps L T osier_traps anch p q K Y = true.
Variables (args : list value) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
(** As [real_right], for the operations of Osier. Two hypotheses are left: the judge folds floats as
    the machine computes them, and memories and tables never shrink. Calls are functions of operands
    and world. *)
Theorem osier_right (E : entry code) here_by far_by sp :
  accept_entry L T anch p q K past ahead need E = true ->
  chk_fire L T osier_traps anch p q K E here_by far_by = true ->
  chk_passed L T osier_traps anch p q K Y E = true ->
  calm p (start p args w) sp -> (sb sp, sk sp) = src E ->
  exists sq, calm q (start q args w) sq /\ (sb sq, sk sq) = tgt E /\
    sw sq = sw sp /\ str sq = str sp /\
    forall env junk, (forall x, mem x (requires E) = true -> env x = se sp x) ->
    let t := with_env sq (fired M E env junk) in
    steps_pass M (halts X) env (steps E) [] (sw sp) /\
    (forall x o, get x (assigns E) = Some o -> se t x = se sq x) /\
    (forall sp', calm p sp sp' -> exists t', calm q t t' /\ sw t' = sw sp' /\ str t' = str sp') /\
    (forall sp' o vs, calm p sp sp' -> result p sp' o vs ->
      exists t', calm q t t' /\ result q t' o vs /\ sw t' = sw sp' /\ str t' = str sp') /\
    (forall sp' o vs, calm p sp sp' -> Traps.traps (halts X) p sp' o vs ->
      exists t', calm q t t' /\ Traps.traps (halts X) q t' o vs /\ sw t' = sw sp' /\
      str t' = str sp').
Proof.
  apply (real_right L M T osier_traps (halts X) anch p q K Y past ahead need armed
    faithful (rules_hold X run T floats) trap_faithful pair_ok traps_ok args w args_ok args_ty).
Qed.
End Right.
(** As [journey_real], for the operations of Osier: certificates that the checks accept are good, so
    that a journey along them is right. *)
Theorem osier_good {W} (X : machine W) run (c : @cert code citation) : FloatsFold run X ->
  accept_pair (rule_lang run) (ct c) (canch c) (cp c) (cq c) (ck c) may_trap (cpast c) (cahead c)
    (cneed c) (carmed c) = true ->
  good (rule_lang run) (osier_sem X) may_trap c.
Proof. intros Fl Pr. split; [now apply rules_hold|exact Pr]. Qed.
Theorem osier_journey {W} (X : machine W) run args w (c : cert) t :
  FloatsFold run X -> SizesGrow X ->
  real_journey (rule_lang run) (osier_sem X) osier_traps (halts X) args w c t ->
  length args = arity (cq c) /\ args_typed (osier_sem X) (ct c) args /\
  exists s, calm (rule_lang run) (osier_sem X) (ct c) (halts X) (canch c) nowhere (cq c)
    (start (osier_sem X) (ct c) (cq c) args w) s /\ Alike (cneed c) s t.
Proof.
  intros Fl Sz J. apply (journey_real (rule_lang run) (osier_sem X) osier_traps (halts X)
    (osier_faithful X run _ Fl) (osier_trap_faithful X Sz)) in J. tauto.
Qed.
(** As [into_right] and [out_right], for the operations of Osier. *)
Definition osier_into {W} (X : machine W) run callee returns Fl Sz :=
  into_right (rule_lang run) (osier_sem X) osier_traps (halts X) callee returns
    (osier_faithful X run _ Fl) (osier_trap_faithful X Sz).
Definition osier_out {W} (X : machine W) run callee returns lands K Fl Sz :=
  out_right (rule_lang run) (osier_sem X) osier_traps (halts X) callee returns lands K
    (osier_faithful X run _ Fl) (osier_trap_faithful X Sz).
Print Assumptions osier_right.
Print Assumptions osier_journey.
Print Assumptions rules_hold.
Print Assumptions osier_into.
Print Assumptions osier_out.
