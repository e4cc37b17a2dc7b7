(** Entries into a version with inlined code, across the copy that it was optimized from.

    No certificate is about such an entry. It does what two accepted entries do in a row: one to the
    original of the copy, and one from the copy on. The check asks that each step of it is a step of
    one of these, on the same operands ([composed]). *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Hops Traps Real Journey.

(** Where a step of a composed entry is from: a step of the first entry, or of one of the entries
    that follow it, each for one frame. *)
Inductive origin := First (m : nat) | Next (j m : nat).
Definition origin_eqb (a b : origin) : bool :=
  match a, b with
  | First m, First n => m =? n
  | Next j m, Next k n => (j =? k) && (m =? n)
  | _, _ => false
  end.
Definition comes (a : origin) (l : list origin) : bool := existsb (origin_eqb a) l.
(** An entry that follows: what it does, and by which value of the first entry it is given one that
    it reads. *)
Record next (op : Type) := NextEntry { ne : entry op; given : nat -> option nat }.
Arguments NextEntry {op}. Arguments ne {op}. Arguments given {op}.

Section Compose.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable halt : op -> list V -> W -> bool.
Variables (E1 : entry op) (nexts : nat -> option (next op)).
Variables (req : set) (l : list (step op)) (from_ : nat -> list origin).

(** ** The check *)
(** Whether an operand is that of the first entry, or of one that follows. *)
Definition is_first (i m : nat) (o o1 : operand) : bool :=
  match o, o1 with
  | Src x, Src y => (x =? y) && mem x req
  | Stp n, Stp k => (n <? i) && (k <? m) && comes (First k) (from_ n)
  | _, _ => false
  end.
Definition is_next (i j m : nat) (N : next op) (o o2 : operand) : bool :=
  match o2 with
  | Src y =>
    match given N y with
    | Some x => match get x (assigns E1) with
                | Some o1 => is_first i (length (steps E1)) o o1 | None => false end
    | None => false
    end
  | Stp k => match o with
             | Stp n => (n <? i) && (k <? m) && comes (Next j k) (from_ n) | _ => false end
  end.
Definition chk_origin (i : nat) (s : step op) (a : origin) : bool :=
  match a with
  | First m =>
    match nth_error (steps E1) m with
    | Some s1 => op_eqb L (so s) (so s1) && all2 (is_first i m) (sa s) (sa s1)
    | None => false
    end
  | Next j m =>
    match nexts j with
    | Some N =>
      match nth_error (steps (ne N)) m with
      | Some s2 => op_eqb L (so s) (so s2) && all2 (is_next i j m N) (sa s) (sa s2)
      | None => false
      end
    | None => false
    end
  end.
Definition chk_steps : bool :=
  indexed (fun i s => negb (is_nil (from_ i)) && forallb (chk_origin i s) (from_ i)) 0 l.

(** ** Running steps *)
Lemma run_grows env k : forall rs, exists t, run_steps M env k rs = rs ++ t /\ length t = length k.
Proof.
  induction k as [|s k IH]; intro rs; [exists []; split; [now rewrite app_nil_r|auto]|]. simpl.
  destruct (IH (rs ++ [opsem M (so s) (map (content M env rs) (sa s))])) as [t [Q Lt]].
  rewrite Q. eexists. rewrite <- app_assoc. split; [reflexivity|]. simpl. now rewrite Lt.
Qed.
Lemma run_nth env k : forall rs i s, nth_error k i = Some s ->
  nth (length rs + i) (run_steps M env k rs) (dflt M 0) =
  opsem M (so s) (map (content M env (firstn (length rs + i) (run_steps M env k rs))) (sa s)).
Proof.
  induction k as [|s1 k IH]; intros rs [|i] s Q; try discriminate.
  - inversion Q; subst. simpl.
    destruct (run_grows env k (rs ++ [opsem M (so s) (map (content M env rs) (sa s))]))
      as [t [-> _]].
    rewrite Nat.add_0_r, <- app_assoc, app_nth2, Nat.sub_diag by lia. simpl.
    rewrite firstn_app, Nat.sub_diag, firstn_all. simpl. now rewrite app_nil_r.
  - simpl in Q |- *.
    specialize (IH (rs ++ [opsem M (so s1) (map (content M env rs) (sa s1))]) _ _ Q).
    rewrite app_length in IH. simpl in IH.
    replace (length rs + S i) with (length rs + 1 + i) by lia. exact IH.
Qed.
Lemma pass_nth env w k : forall rs, steps_pass M halt env k rs w <->
  forall i s, nth_error k i = Some s -> halt (so s)
    (map (content M env (firstn (length rs + i) (run_steps M env k rs))) (sa s)) w = false.
Proof.
  induction k as [|s1 k IH]; intro rs; simpl.
  { split; auto. intros _ [|i] s Q; discriminate. }
  set (r := rs ++ [opsem M (so s1) (map (content M env rs) (sa s1))]).
  assert (Hd: firstn (length rs + 0) (run_steps M env k r) = rs).
  { destruct (run_grows env k r) as [t [-> _]]. unfold r.
    rewrite Nat.add_0_r, <- app_assoc, firstn_app, Nat.sub_diag, firstn_all. simpl.
    now rewrite app_nil_r. }
  specialize (IH r). assert (Lr: length r = length rs + 1) by (unfold r; now rewrite app_length).
  rewrite Lr in IH. split.
  - intros [Hs Rest] [|i] s Q; simpl in Q.
    + inversion Q; subst. now rewrite Hd.
    + replace (length rs + S i) with (length rs + 1 + i) by lia. now apply IH.
  - intro G. split.
    + specialize (G 0 s1 eq_refl). now rewrite Hd in G.
    + apply IH. intros i s Q. replace (length rs + 1 + i) with (length rs + S i) by lia.
      now apply (G (S i)).
Qed.

(** ** What the steps compute *)
Hypothesis F : Faithful L M.
Hypothesis steps_ok : chk_steps = true.
(** The contents that the composed entry finds, the first one, and those that follow. *)
Variables (env env1 : nat -> V) (env2 : nat -> nat -> V).
Hypothesis env_ok : forall x, mem x req = true -> env x = env1 x.
Hypothesis given_ok : forall j N y x o, nexts j = Some N -> given N y = Some x ->
  get x (assigns E1) = Some o -> fire M E1 env1 o = env2 j y.
Notation rs := (run_steps M env l []).
Notation rs1 := (run_steps M env1 (steps E1) []).
Notation rs2 j N := (run_steps M (env2 j) (steps (ne N)) []).
Definition Is (i : nat) (a : origin) : Prop :=
  match a with
  | First m => nth i rs (dflt M 0) = nth m rs1 (dflt M 0)
  | Next j m => forall N, nexts j = Some N -> nth i rs (dflt M 0) = nth m (rs2 j N) (dflt M 0)
  end.
Lemma nth_firstn_lt (r : list V) i n : n < i -> nth n (firstn i r) (dflt M 0) = nth n r (dflt M 0).
Proof.
  revert i n. induction r as [|x r IH]; intros [|i] [|n] Q; simpl; auto; try lia. apply IH. lia.
Qed.
Lemma comes_in a k : comes a k = true -> In a k.
Proof.
  unfold comes. rewrite existsb_exists. intros [b [Ib Q]]. destruct a, b; simpl in Q;
    try discriminate; bools; subst; auto.
Qed.
Lemma first_content i m o o1 : (forall n a, n < i -> In a (from_ n) -> Is n a) ->
  is_first i m o o1 = true -> content M env (firstn i rs) o = content M env1 (firstn m rs1) o1.
Proof.
  intros IH Q. destruct o as [x|n], o1 as [y|k]; simpl in Q; try discriminate; bools; simpl.
  - subst. auto.
  - rewrite !nth_firstn_lt by auto. apply (IH n (First k)); auto. now apply comes_in.
Qed.
Lemma all_rs1 : firstn (length (steps E1)) rs1 = rs1.
Proof.
  destruct (run_grows env1 (steps E1) []) as [t [-> Q]]. simpl. now rewrite <- Q, firstn_all.
Qed.
Lemma next_content i j m N o o2 : (forall n a, n < i -> In a (from_ n) -> Is n a) ->
  nexts j = Some N -> is_next i j m N o o2 = true ->
  content M env (firstn i rs) o = content M (env2 j) (firstn m (rs2 j N)) o2.
Proof.
  intros IH Nj Q. destruct o2 as [y|k]; simpl in Q.
  - destruct (given N y) as [x|] eqn:Gy; [|discriminate].
    destruct (get x (assigns E1)) as [o1|] eqn:Gx; [|discriminate]. simpl.
    rewrite <- (given_ok _ _ _ _ _ Nj Gy Gx). unfold fire.
    rewrite (first_content _ _ _ _ IH Q). now rewrite all_rs1.
  - destruct o as [|n]; [discriminate|]. bools. simpl. rewrite !nth_firstn_lt by auto.
    apply (IH n (Next j k)); auto. now apply comes_in.
Qed.
Lemma all2_map {A} (P : operand -> operand -> bool) (f g : operand -> A) x : forall y,
  (forall o o', P o o' = true -> f o = g o') -> all2 P x y = true -> map f x = map g y.
Proof.
  induction x as [|o x IH]; intros [|o' y] Q A2; simpl in *; try discriminate; auto.
  apply andb_true_iff in A2. destruct A2. f_equal; auto.
Qed.
Lemma origin_of i s a : nth_error l i = Some s -> In a (from_ i) -> chk_origin i s a = true.
Proof.
  intros Q Ia. pose proof (indexed_ok _ _ _ steps_ok _ _ Q) as G. simpl in G.
  apply andb_true_iff in G. destruct G as [_ G]. rewrite forallb_forall in G. auto.
Qed.
Lemma all_is : forall i a, i < length l -> In a (from_ i) -> Is i a.
Proof.
  induction i as [i IHi] using lt_wf_ind. intros a Li Ia.
  assert (IH: forall n a, n < i -> In a (from_ n) -> Is n a) by (intros; apply IHi; auto; lia).
  destruct (nth_error l i) as [s|] eqn:Q; [|apply nth_error_None in Q; lia].
  pose proof (origin_of _ _ _ Q Ia) as Co. pose proof (run_nth env l [] _ _ Q) as Rn. simpl in Rn.
  destruct a as [m|j m]; simpl in Co |- *.
  - destruct (nth_error (steps E1) m) as [s1|] eqn:Q1; [|discriminate].
    apply andb_true_iff in Co. destruct Co as [Eo A2]. apply (op_eqb_ok _ _ F) in Eo.
    pose proof (run_nth env1 (steps E1) [] _ _ Q1) as R1. simpl in R1. rewrite Rn, R1, Eo.
    f_equal. eapply all2_map; [|exact A2]. intros. now apply first_content.
  - intros N Nj. rewrite Nj in Co. destruct (nth_error (steps (ne N)) m) as [s2|] eqn:Q2;
      [|discriminate].
    apply andb_true_iff in Co. destruct Co as [Eo A2]. apply (op_eqb_ok _ _ F) in Eo.
    pose proof (run_nth (env2 j) (steps (ne N)) [] _ _ Q2) as R2. simpl in R2. rewrite Rn, R2, Eo.
    f_equal. eapply all2_map; [|exact A2]. intros. eapply next_content; eauto.
Qed.
(** An operand of the composed entry gives what that of an entry that follows gives. *)
Lemma composed j N o o2 : nexts j = Some N ->
  is_next (length l) j (length (steps (ne N))) N o o2 = true ->
  content M env rs o = fire M (ne N) (env2 j) o2.
Proof.
  intros Nj Q. unfold fire.
  assert (A: firstn (length l) rs = rs).
  { destruct (run_grows env l []) as [t [-> Lt]]. simpl. now rewrite <- Lt, firstn_all. }
  assert (A2: firstn (length (steps (ne N))) (rs2 j N) = rs2 j N).
  { destruct (run_grows (env2 j) (steps (ne N)) []) as [t [-> Lt]]. simpl.
    now rewrite <- Lt, firstn_all. }
  rewrite <- A at 1. rewrite <- A2. eapply next_content; eauto.
  intros n a Ln Ia. now apply all_is.
Qed.
(** No step of the composed entry traps, if no step of the entries does. *)
Lemma composed_pass w : steps_pass M halt env1 (steps E1) [] w ->
  (forall j N, nexts j = Some N -> steps_pass M halt (env2 j) (steps (ne N)) [] w) ->
  steps_pass M halt env l [] w.
Proof.
  intros P1 P2. apply pass_nth. intros i s Q. simpl.
  assert (Li: i < length l) by (apply nth_error_Some; congruence).
  assert (IH: forall n a, n < i -> In a (from_ n) -> Is n a) by (intros; apply all_is; auto; lia).
  pose proof (indexed_ok _ _ _ steps_ok _ _ Q) as G. simpl in G.
  apply andb_true_iff in G. destruct G as [Ne G].
  destruct (from_ i) as [|a k]; [discriminate|]. simpl in G. apply andb_true_iff in G.
  destruct G as [Co _]. destruct a as [m|j m]; simpl in Co.
  - destruct (nth_error (steps E1) m) as [s1|] eqn:Q1; [|discriminate].
    apply andb_true_iff in Co. destruct Co as [Eo A2]. apply (op_eqb_ok _ _ F) in Eo.
    pose proof (proj1 (pass_nth env1 w (steps E1) []) P1 _ _ Q1) as Z. simpl in Z. rewrite Eo.
    erewrite all2_map; [exact Z| |exact A2]. intros. now apply first_content.
  - destruct (nexts j) as [N|] eqn:Nj; [|discriminate].
    destruct (nth_error (steps (ne N)) m) as [s2|] eqn:Q2; [|discriminate].
    apply andb_true_iff in Co. destruct Co as [Eo A2]. apply (op_eqb_ok _ _ F) in Eo.
    pose proof (proj1 (pass_nth (env2 j) w (steps (ne N)) []) (P2 _ _ Nj) _ _ Q2) as Z. simpl in Z.
    rewrite Eo. erewrite all2_map; [exact Z| |exact A2]. intros. eapply next_content; eauto.
Qed.
End Compose.
