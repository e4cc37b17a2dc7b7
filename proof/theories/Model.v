(** A model of the hypotheses: they do not contradict each other.

    The language has bytes, a memory of two bytes, an effect that extends the world, and a division
    that traps. Two memories differ, and so do two worlds. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Classes Version Pair Entry Clean Main Traps Walk Owed Matched
  Landing Real.
Local Open Scope Z_scope.

Inductive code := OConst (z : Z) | OAdd | OSub | ODiv | OLoad | OStore | OJump | OBranch | OEmit.
Inductive cell := Int (z : Z) | Mem (a b : Z).
Definition code_eqb (a b : code) : bool :=
  match a, b with
  | OConst x, OConst y => x =? y
  | OAdd, OAdd | OSub, OSub | ODiv, ODiv | OLoad, OLoad | OStore, OStore | OJump, OJump
  | OBranch, OBranch | OEmit, OEmit => true
  | _, _ => false
  end.
Definition byte (z : Z) : Z := z mod 2 ^ 8.
Definition number (v : cell) : Z := match v with Int z => z | Mem _ _ => 0 end.
Definition seen (v : cell) (l : loc) : cell :=
  match v, l with
  | Mem a b, LByte 0 x => if x =? 0 then Int a else if x =? 1 then Int b else Int 0
  | _, _ => Int 0
  end.
(** Addresses wrap modulo 2. *)
Definition put (m : cell) (x z : Z) : cell :=
  let at_ y := number (seen m (LByte 0 y)) in
  if x mod 2 =? 0 then Mem z (at_ 1) else Mem (at_ 0) z.
Definition operate (o : code) (vs : list cell) : cell :=
  let n k := number (nth k vs (Int 0)) in
  match o with
  | OConst z => Int (byte z)
  | OAdd => Int (byte (n 0%nat + n 1%nat))
  | OSub => Int (byte (n 0%nat - n 1%nat))
  | ODiv => Int (byte (n 0%nat / n 1%nat))
  | OLoad => Int (byte (number (seen (List.last vs (Int 0)) (LByte 0 (n 0%nat mod 2)))))
  | OStore => put (List.last vs (Int 0)) (n 0%nat) (number (List.last (removelast vs) (Int 0)))
  | _ => Int 0
  end.
(** The types: 0 of all integers, 1 of memories, and [2 + w] of the integers of width [w]. *)
Definition type_of (w : Z) : nat := if w <? 0 then 0%nat else S (S (Z.to_nat w)).
Definition has_type (t : nat) (v : cell) : Prop :=
  match t, v with
  | 0%nat, Int _ => True
  | 1%nat, Mem _ _ => True
  | S (S n), Int z => 0 <= z < 2 ^ Z.of_nat n
  | _, _ => False
  end.
Definition i8 : nat := type_of 8.
Definition model_lang : Lang Z code unit := {|
  op_eqb := code_eqb;
  ceqb := Z.eqb;
  comm := fun o => match o with OAdd => true | _ => false end;
  fold := fun o cs => match o, cs with
                      | OConst z, [] => Some (byte z)
                      | OAdd, [x; y] => Some (byte (x + y))
                      | _, _ => None
                      end;
  pick := fun o cs => match o, cs with
                      | OBranch, [c] => if c =? 0 then 1%nat else 0%nat | _, _ => 0%nat end;
  asks := fun _ _ _ => false;
  rty := fun o => match o with
                  | OStore => 1%nat
                  | OConst _ | OAdd | OSub | ODiv | OLoad => i8
                  | _ => 0%nat
                  end;
  signed := fun _ _ => true;
  ety := fun o _ => match o with OAdd => i8 | _ => 0%nat end;
  arith_of := fun o => match o with
                       | OAdd => Some (AAdd, 8) | OSub => Some (ASub, 8)
                       | OConst _ => Some (AConst, 8) | _ => None
                       end;
  int_type := type_of;
  zc := fun c => c;
  reads := fun o => match o with OLoad => Some (Bytes 0 0 1 1) | _ => None end;
  writes := fun o => match o with OStore => Some (Bytes 0 0 1 1) | _ => None end;
  gives_back := fun o o' => match o, o' with OStore, OLoad => true | _, _ => false end;
  rule_ok := fun _ _ _ => false
|}.
(** The effect takes its operands into the world, and gives the number of effects before it. As an
    effect, [OAdd] is a call (CopyModel.v). *)
Definition model : Sem Z code cell (list (list cell)) := {|
  typed := has_type;
  dflt := fun t => match t with 1%nat => Mem 0 0 | _ => Int 0 end;
  val := Int;
  opsem := operate;
  effsem := fun o vs w =>
    (vs :: w, [match o with OAdd => Int 0 | _ => Int (Z.of_nat (length w)) end]);
  choose := fun o vs => match o, vs with
                        | OBranch, [c] => if number c =? 0 then 1%nat else 0%nat
                        | _, _ => 0%nat end;
  num := number;
  norm := fun w z => if w <? 0 then Int z else Int (z mod 2 ^ w);
  look := seen
|}.
Definition model_traps : TrapLang Z code := {|
  can_trap := fun o => match o with ODiv => true | _ => false end;
  safe := fun o ks => match o, ks with ODiv, [_; Some d] => negb (d =? 0) | _, _ => false end;
  vouch := fun o o' => match o, o' with ODiv, ODiv => Some 2%nat | _, _ => None end;
  vouch_at := fun _ _ _ _ => false
|}.
(** A division traps if its divisor is 0. *)
Definition model_halt (o : code) (vs : list cell) (_ : list (list cell)) : bool :=
  match o with ODiv => number (nth 1 vs (Int 0)) =? 0 | _ => false end.

Lemma code_eqb_ok a b : code_eqb a b = true -> a = b.
Proof. destruct a, b; simpl; intro H; try discriminate; auto. apply Z.eqb_eq in H. now subst. Qed.
Lemma within_cell x m a : within x (Bytes 0 0 1 1) (LByte m a) <-> m = 0%nat /\ a = x mod 2.
Proof.
  simpl. split.
  - intros [-> [k [Hk ->]]]. split; auto. replace k with 0 by lia. f_equal. lia.
  - intros [-> ->]. split; auto. exists 0. split; [lia|]. f_equal. lia.
Qed.
Lemma look_put m x z l : seen (put m x z) l =
  match l with
  | LByte 0 a => if a =? x mod 2 then Int z else Int (number (seen m (LByte 0 a)))
  | _ => Int 0
  end.
Proof.
  pose proof (Z.mod_pos_bound x 2 ltac:(lia)) as Bd. unfold put.
  destruct l as [[|n] a|n], m; repeat (simpl;
    match goal with |- context [?a =? ?b] => destruct (Z.eqb_spec a b) end); subst; auto; lia.
Qed.
Lemma int_seen m l : Int (number (seen m l)) = seen m l.
Proof. destruct m, l as [[|n] x|n]; simpl; auto. now destruct (x =? 0), (x =? 1). Qed.
Lemma store_at xs m : operate OStore (xs ++ [m]) =
  put m (number (nth 0 (xs ++ [m]) (Int 0))) (number (List.last xs (Int 0))).
Proof. unfold operate. now rewrite removelast_last, last_last. Qed.
Lemma nth_hd (xs : list cell) m : nth 0 (xs ++ [m]) (Int 0) = hd m xs.
Proof. now destruct xs. Qed.
Lemma seen_other m n a : seen m (LByte (S n) a) = Int 0.
Proof. now destruct m. Qed.
Lemma seen_cell m n : seen m (LCell n) = Int 0.
Proof. now destruct m. Qed.

Theorem model_faithful : Faithful model_lang model.
Proof.
  constructor; simpl.
  - apply code_eqb_ok.
  - apply Z.eqb_eq.
  - intros o a b C. destruct o; try discriminate. unfold operate. simpl.
    now rewrite Z.add_comm.
  - intros o cs c H. destruct o; try discriminate; destruct cs as [|x [|y [|]]]; try discriminate;
      inversion H; auto.
  - intros o cs. destruct o; auto. destruct cs as [|c [|]]; auto.
  - discriminate.
  - intros [|[|t]]; simpl; auto. split; [lia|].
    apply Z.pow_pos_nonneg; lia.
  - intros o vs. destruct o; simpl; auto; try (apply Z.mod_pos_bound; lia).
    unfold put. now destruct (_ =? 0).
  - intros o vs w [|[|n]] d H; destruct o; simpl; auto; lia.
  - auto.
  - intros w x H. unfold type_of in H. destruct (w <? 0) eqn:N.
    + now destruct x.
    + apply Z.ltb_ge in N. destruct x; [|contradiction]. simpl in *.
      rewrite Z2Nat.id in H by auto. now rewrite Z.mod_small.
  - intros w m n H. destruct (w <? 0) eqn:N; [|now rewrite H]. apply Z.ltb_lt in N.
    rewrite Z.pow_neg_r in H by auto. rewrite !Zmod_0_r in H. now subst.
  - intros w n. destruct (w <? 0) eqn:N; auto. apply Z.ltb_ge in N. simpl. apply Z.mod_mod.
    assert (0 < 2 ^ w) by (apply Z.pow_pos_nonneg; lia). lia.
  - intros o a w H. destruct o; inversion H; subst; repeat split; auto; lia.
  - intros o p xs m m' H Ad E. destruct o; inversion H; subst; clear H. simpl in Ad.
    unfold operate. rewrite !last_last. destruct xs as [|x xs]; [contradiction|]. cbn [app nth].
    do 3 f_equal. apply E. now apply within_cell.
  - intros o p xs m l H Ad N. destruct o; inversion H; subst; clear H.
    change (seen (operate OStore (xs ++ [m])) l = seen m l).
    rewrite store_at, look_put, nth_hd. destruct l as [[|n] a|n].
    + destruct (a =? number (hd m xs) mod 2) eqn:A; [|apply int_seen].
      exfalso. apply N. apply within_cell. apply Z.eqb_eq in A. auto.
    + symmetry. apply seen_other.
    + symmetry. apply seen_cell.
  - intros o p xs m m' l H Ad I. destruct o; inversion H; subst; clear H. simpl in Ad.
    change (seen (operate OStore (xs ++ [m])) l = seen (operate OStore (xs ++ [m'])) l).
    rewrite !store_at, !look_put, !nth_hd. destruct l as [n a|n]; [|contradiction].
    apply within_cell in I. destruct I as [-> ->]. destruct xs; [contradiction|]. simpl hd.
    now rewrite Z.eqb_refl.
  - intros o o' p p' vs vs' H H' E. destruct o; inversion H; destruct o'; inversion H'.
    assert (G: forall m m' x x' z z', (forall l, seen (put m x z) l = seen (put m' x' z') l) ->
      put m x z = put m' x' z').
    { intros m m' x x' z z' Q. pose proof (Q (LByte 0 0)) as Q0. pose proof (Q (LByte 0 1)) as Q1.
      unfold put in *. destruct (x mod 2 =? 0), (x' mod 2 =? 0); simpl in *; congruence. }
    apply G. exact E.
  - intros o o' p p' xs x ys m Gb H H' Ad Ad' Ty Eq.
    destruct o; inversion H; destruct o'; inversion H'; subst; clear H H'. simpl in Ad, Ad'.
    destruct x as [z|]; [|contradiction]. simpl in Ty.
    change (operate OStore (xs ++ [Int z; m])) with (operate OStore (xs ++ [Int z] ++ [m])) in *.
    rewrite (app_assoc xs [Int z] [m]) in *. rewrite store_at in *. rewrite last_last in *.
    rewrite nth_hd in *. destruct ys as [|y ys]; [contradiction|]. destruct xs as [|x xs];
      [contradiction|]. cbn [hd app number] in Eq |- *.
    assert (A: number y mod 2 = number x mod 2).
    { apply (proj1 (within_cell (number x) 0 (number y mod 2))). apply Eq.
      now apply within_cell. }
    unfold operate. rewrite app_comm_cons, last_last. cbn [app nth].
    rewrite look_put, A, Z.eqb_refl.
    cbn [number]. unfold byte. rewrite Z.mod_small; auto.
  - intros o p [H|H]; destruct o; inversion H; subst; simpl; lia.
Qed.
Theorem model_rules T : RulesHold model_lang model T.
Proof. intros r t Ok H. discriminate. Qed.
Theorem model_trap_faithful : TrapFaithful model_traps model model_halt.
Proof.
  constructor.
  - intros o vs w H. now destruct o.
  - intros o ks vs w S K. destruct o; try discriminate.
    destruct ks as [|k [|[d|] [|]]]; try discriminate. inversion K; subst.
    inversion H3; subst. inversion H5; subst. simpl in *. now apply negb_true_iff.
  - intros o o' n vs vs' w Vo E H. destruct o, o'; try discriminate. inversion Vo; subst n.
    unfold model_halt in *. destruct vs as [|a [|b vs]], vs' as [|a' [|b' vs']]; simpl in *;
      try discriminate; congruence.
  - discriminate.
  - intros o vs e us w H. exact H.
Qed.
(** The model is not trivial: a store is seen by a load at its address, and by no other. *)
Example model_stores : let m := operate OStore [Int 1; Int 7; Mem 3 4] in
  operate OLoad [Int 1; m] = Int 7 /\ operate OLoad [Int 0; m] = Int 3 /\ m <> Mem 3 4.
Proof. repeat split; discriminate. Qed.
(** ** The theorem applies: a version that divides, and an entry that divides again

    [fn(x) = x / x]. The entry stands behind the division, and its step repeats it: the division of
    the source version vouches for the step. *)
Definition table_ : table code unit := {|
  tn := 3;
  tg := fun t => match t with
                 | 0%nat => Term (KArg 0) 0 i8 ByItself
                 | 1%nat => Term (KArg 1) 1 1 ByItself
                 | _ => Term (KOp ODiv [0; 0]%nat) 2 i8 ByItself
                 end;
  deps := fun _ => [0%nat];
  mdep := fun _ => []
|}.
Definition divides : version code := {|
  fn := 1;
  fb := fun _ => Blk [0; 1]%nat 1 (fun _ => IPure 4 2 ODiv [0; 0]%nat)
                     (Last 5 OJump [2; 1]%nat []);
  tm := fun x => x;
  lv := fun _ => true;
  doms := fun _ => [0%nat];
  dl := fun x => if Nat.eqb x 2 then (0, 1)%nat else (0, 0)%nat;
  sole := fun _ => None;
  home := fun _ => 0%nat;
  eloc := fun _ => (0, 0)%nat;
  mreads := fun _ => [];
  holder := fun x => x
|}.
Definition is_anchor (a : nat) : bool := Nat.eqb a 4 || Nat.eqb a 5.
Definition both : claims := {|
  nids := 6; agree := fun _ => Node Leaf 0 (Node Leaf 1 Leaf); equal := fun _ => [];
  reached := is_anchor; stopped := fun _ => false;
  pos := fun a => if Nat.eqb a 4 then ((0, 0), (0, 0))%nat else ((0, 1), (0, 1))%nat;
  asked := fun _ => None
|}.
Definition need_ (_ k : nat) : set :=
  match k with 0%nat => Node Leaf 0 (Node Leaf 1 Leaf) | _ => Node Leaf 1 (Node Leaf 2 Leaf) end.
Definition again : entry code := {|
  src := (0, 1)%nat; tgt := (0, 1)%nat; requires := Node Leaf 0 (Node Leaf 1 Leaf);
  steps := [Step ODiv [Src 0; Src 0] (Some 2%nat) None];
  assigns := MNode MLeaf 1 (Src 1) (MNode MLeaf 2 (Stp 0) MLeaf)
|}.
Definition all (_ : nat) := true.
Definition nothing (_ _ : nat) := Leaf.
Lemma pair_accepted : accept_pair model_lang table_ is_anchor divides divides both
  (can_trap model_traps) all all need_ nothing = true.
Proof. vm_compute. reflexivity. Qed.
Definition no_claims : owing := {|
  steps_at_most := 9; by_p := fun _ => 0%nat; by_q := fun _ => 0%nat; only_p := fun _ => [];
  only_q := fun _ => []; rank := fun _ => 0%nat; came := fun _ => []; meets := fun _ => [];
  known_p := fun _ => []; known_q := fun _ => []
|}.
Lemma traps_accepted :
  chk_traps model_lang table_ model_traps is_anchor divides divides both no_claims = true.
Proof. vm_compute. reflexivity. Qed.
Lemma passed_accepted :
  chk_passed model_lang table_ model_traps is_anchor divides divides both no_claims again = true.
Proof. vm_compute. reflexivity. Qed.
Lemma entry_accepted :
  accept_entry model_lang table_ is_anchor divides divides both all all need_ again = true.
Proof. vm_compute. reflexivity. Qed.
Definition fires_by (y : nat) : bool := chk_fire model_lang table_ model_traps is_anchor divides
  divides both again (fun _ => y) (fun _ => 0%nat).
Lemma fire_accepted : fires_by 2 = true.
Proof. vm_compute. reflexivity. Qed.
(** The same step before the division is refused, and so is one without a voucher. *)
Lemma fire_refused : fires_by 0 = false.
Proof. vm_compute. reflexivity. Qed.

(** The version started with [x] in an empty memory, and behind its division. *)
Definition started (x : Z) : st cell (list (list cell)) :=
  start model table_ divides [Int x; Mem 0 0] [].
Theorem model_applies x : 0 < x < 256 -> exists sq,
  calm model_lang model table_ model_halt is_anchor nowhere divides (started x) sq /\
  (sb sq, sk sq) = (0, 1)%nat /\
  steps_pass model model_halt (fun v => match v with 0%nat => Int x | _ => Mem 0 0 end)
    (steps again) [] [].
Proof.
  intro Hx. set (s0 := started x).
  assert (Ps: passes model_halt divides s0).
  { unfold passes. simpl. unfold model_halt. simpl. apply Z.eqb_neq. lia. }
  destruct (step1 model_lang model table_ is_anchor nowhere divides s0) as [s1|] eqn:St;
    [|discriminate].
  assert (Cm: calm model_lang model table_ model_halt is_anchor nowhere divides s0 s1)
    by (eapply CS; [constructor| |]; eauto).
  inversion St; subst s1; clear St.
  assert (Ta: args_typed model table_ [Int x; Mem 0 0]).
  { intros t n Kt. destruct t as [|[|[|t]]]; inversion Kt; subst; simpl; auto. lia. }
  destruct (real_right model_lang model table_ model_traps model_halt is_anchor divides divides both
    _ all all need_ nothing model_faithful (model_rules _) model_trap_faithful pair_accepted
    traps_accepted [Int x; Mem 0 0] [] eq_refl Ta again _ _ _ entry_accepted fire_accepted
    passed_accepted Cm eq_refl) as [sq [Cq [Aq [_ [_ Right]]]]].
  exists sq. split; auto. split; auto. apply (Right _ (fun _ => Int 0)).
  intros y Hy. destruct y as [|[|y]]; auto. exfalso. simpl in Hy. discriminate.
Qed.
Print Assumptions model_applies.

(** ** A division that one version executes before a branch, and the other behind it *)
Definition divides_at (late : bool) : version code := {|
  fn := 2;
  fb := fun b => match b with
    | 0%nat => Blk [0; 1]%nat (if late then 0 else 1) (fun _ => IPure 6 2 ODiv [0; 0]%nat)
                   (Last 4 OJump [] [Edge 1 []])
    | _ => Blk [] (if late then 1 else 0) (fun _ => IPure 6 2 ODiv [0; 0]%nat)
               (Last 5 OJump [2; 1]%nat [])
    end;
  tm := fun x => x;
  lv := fun _ => true;
  doms := fun b => match b with 0%nat => [0%nat] | _ => [b; 0%nat] end;
  dl := fun x => if Nat.eqb x 2 then ((if late then 1 else 0), 1)%nat else (0, 0)%nat;
  sole := fun _ => Some 0%nat;
  home := fun _ => 0%nat;
  eloc := fun _ => (0, 0)%nat;
  mreads := fun _ => [];
  holder := fun x => x
|}.
Notation late := (divides_at true).
Notation early := (divides_at false).
Definition is_end (a : nat) : bool := Nat.eqb a 4 || Nat.eqb a 5.
Definition moved : claims := {|
  nids := 6; agree := fun _ => Node Leaf 0 (Node Leaf 1 Leaf); equal := fun _ => [];
  reached := is_end; stopped := fun _ => false;
  pos := fun a => if Nat.eqb a 4 then ((0, 0), (0, 1))%nat else ((1, 1), (1, 0))%nat;
  asked := fun _ => None
|}.
(** The late version owes the division at the jump. *)
Definition owes_division : owing := {|
  steps_at_most := 9; by_p := fun _ => 0%nat; by_q := fun _ => 0%nat; only_p := fun _ => [];
  only_q := fun a => if Nat.eqb a 4 then [2%nat] else []; rank := fun _ => 0%nat;
  came := fun a => if Nat.eqb a 5 then [2%nat] else [];
  meets := fun a => if Nat.eqb a 4 then [2%nat] else [];
  known_p := fun _ => [2%nat]; known_q := fun _ => [2%nat]
|}.
Lemma moved_accepted : chk_pair model_lang table_ is_end late early moved = true.
Proof. vm_compute. reflexivity. Qed.
Lemma owed_accepted :
  chk_traps model_lang table_ model_traps is_end late early moved owes_division = true.
Proof. vm_compute. reflexivity. Qed.
(** An entry that lands behind the branch, from behind the division or from before it. *)
Definition behind (k : nat) : entry code := {|
  src := (1, k)%nat; tgt := (1, 0)%nat; requires := Node Leaf 0 (Node Leaf 1 Leaf);
  steps := [Step ODiv [Src 0; Src 0] (Some 2%nat) None];
  assigns := MNode MLeaf 1 (Src 1) (MNode MLeaf 2 (Stp 0) MLeaf)
|}.
Lemma behind_accepted :
  chk_passed model_lang table_ model_traps is_end late early moved owes_division (behind 1) = true.
Proof. vm_compute. reflexivity. Qed.
Lemma before_refused :
  chk_passed model_lang table_ model_traps is_end late early moved owes_division (behind 0) = false.
Proof. vm_compute. reflexivity. Qed.
(** The late version passes the jump, and divides by 0. The early version has not come so far. *)
Theorem model_owes : exists sp sq,
  calm model_lang model table_ model_halt is_end nowhere late (start model table_ late
    [Int 0; Mem 0 0] []) sp /\ (sb sp, sk sp) = (1, 0)%nat /\
  calm model_lang model table_ model_halt is_end nowhere early (start model table_ early
    [Int 0; Mem 0 0] []) sq /\ (sb sq, sk sq) = (0, 0)%nat /\
  traps model_halt late sp ODiv [Int 0; Int 0] /\ traps model_halt early sq ODiv [Int 0; Int 0].
Proof.
  set (s0 := start model table_ late [Int 0; Mem 0 0] []).
  destruct (step1 model_lang model table_ is_end nowhere late s0) as [s1|] eqn:St;
    [|discriminate].
  assert (Cm: calm model_lang model table_ model_halt is_end nowhere late s0 s1)
    by (eapply CS; [constructor|reflexivity|exact St]).
  inversion St; subst s1; clear St.
  match type of Cm with calm _ _ _ _ _ _ _ _ ?s => set (sp := s) in * end.
  assert (Tr: traps model_halt late sp ODiv [Int 0; Int 0])
    by (exists (fb late 1), 6%nat, 2%nat, [0; 0]%nat; repeat split).
  assert (Ta: args_typed model table_ [Int 0; Mem 0 0]).
  { intros t n Kt. destruct t as [|[|[|t]]]; inversion Kt; subst; simpl; auto. lia. }
  destruct (traps_together model_lang model table_ model_traps model_halt is_end late early moved
    owes_division model_faithful (model_rules _) model_trap_faithful moved_accepted owed_accepted
    [Int 0; Mem 0 0] [] eq_refl Ta sp ODiv [Int 0; Int 0] Cm) as [sq [vs' [Cq [Tq _]]]]; auto.
  { intros B E. unfold quiet. simpl. inversion E; subst. reflexivity. }
  pose proof Tq as [B [i [x [y [E [N _]]]]]].
  destruct (calm_first _ _ _ _ _ _ _ _ _ Cq) as [->|[s1 [P1 _]]]; [|discriminate].
  do 2 eexists. split; [exact Cm|]. split; [reflexivity|]. split; [exact Cq|].
  split; [reflexivity|]. split; [exact Tr|].
  exists (fb early 0), 6%nat, 2%nat, [0; 0]%nat. repeat split.
Qed.
Print Assumptions model_owes.
