(** Traps of two versions: both trap by the same operations in the same order, but one may come to
    an operation earlier, behind another number of branches.

    A version *owes* operations at an anchor: the other version has executed them, and it has not.
    The operations that a version owes form a queue. On the way to the next anchor, each version
    adds the operations that it executes and that nothing excuses. Operations at the heads of both
    queues that are the same, on the same operands, cancel. While a queue is not empty, only
    branches are executed, and the anchors with such a queue form no cycle. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Traps Walk.

(** Claims about traps. A value stands for the operation that defines it. *)
Record owing := Owing {
  steps_at_most : nat;              (* the steps of each way *)
  by_p : nat -> nat;                (* by value of p, one of p that vouches for it *)
  by_q : nat -> nat;
  only_p : nat -> list nat;         (* by anchor: executed by p, and owed by q *)
  only_q : nat -> list nat;
  rank : nat -> nat;                (* falls from one anchor with a queue to the next *)
  came : nat -> list nat;           (* what q may be ahead by where a way to the anchor begins *)
  meets : nat -> list nat;          (* what q may execute on a way to the anchor *)
  known_p : nat -> list nat;        (* by value of q, values of p that vouch for it *)
  known_q : nat -> list nat
}.

Section Owed.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variable anch : nat -> bool.
Variables (p q : version op) (K : claims) (X : owing).
Notation D := (D M T).
Notation vcl := (vcl T).
Notation stop := (stopped K).
Notation start := (start M T).
Notation step1 := (step1 L M T anch stop).
Notation nreach := (nreach L M T anch stop).
Notation at_anchor := (at_anchor anch).
Notation Inv := (Inv L M T).
Notation same_ops := (same_ops T p q K).
Notation walkp := (walk L T H anch p (by_p X) (steps_at_most X)).
Notation walkq := (walk L T H anch q (by_q X) (steps_at_most X)).
Notation lists := (lists M T H).
Notation first_trap := (first_trap halt).

(** ** The check *)
(** At the anchor [a], an operation of one version vouches for one of the other. *)
Definition p_vouches (a x y : nat) : bool :=
  match site_of p x, site_of q y with
  | Some (o, c), Some (o', c') =>
    can_trap H o &&
    match vouch H o o' with Some n => same_ops a (firstn n c) (firstn n c') | None => false end
  | _, _ => false
  end.
Definition q_vouches (a y x : nat) : bool :=
  match site_of p x, site_of q y with
  | Some (o, c), Some (o', c') =>
    can_trap H o' &&
    match vouch H o' o with Some n => same_ops a (firstn n c) (firstn n c') | None => false end
  | _, _ => false
  end.
(** An operation of [p] that vouches for one of [q] was executed before the way [lp] to the anchor
    at [ap]. *)
Definition p_passed (a : nat) (ap : nat * nat) (lp : list (nat * bool)) (y : nat) : bool :=
  existsb (fun x => availb p x (fst ap) (snd ap) && negb (inb x (map fst lp)) && p_vouches a x y)
          (known_p X y).
Definition q_passed (a : nat) (aq : nat * nat) (lq : list (nat * bool)) (x : nat) : bool :=
  existsb (fun y => availb q y (fst aq) (snd aq) && negb (inb y (map fst lq)) && q_vouches a y x)
          (known_q X x).
(** The last operand: the memory of an access. *)
Definition latest {A} (l : list A) : list A := skipn (pred (length l)) l.
(** The same operation on operands that decide a trap alike. A store need not have the same value to
    write. *)
Definition same_site (a x y : nat) : bool :=
  match site_of p x, site_of q y with
  | Some (o, c), Some (o', c') =>
    op_eqb L o o' &&
    (same_ops a c c' || match vouch H o o with
                        | Some n => same_ops a (firstn n c) (firstn n c') &&
                                    same_ops a (latest c) (latest c')
                        | None => false
                        end)
  | _, _ => false
  end.
Fixpoint cancel (a : nat) (xs ys : list nat) : list nat * list nat :=
  match xs, ys with
  | x :: xs', y :: ys' => if same_site a x y then cancel a xs' ys' else (xs, ys)
  | _, _ => (xs, ys)
  end.
Definition owed (a : nat) : bool := negb (is_nil (only_p X a) && is_nil (only_q X a)).
(** The ways of both versions to the next anchor, from places behind an anchor at which these
    operations are owed. *)
Definition chk_ways (from : option nat) (xs ys : list nat) (gp gq : nat * nat) : bool :=
  match walkp (fst gp) (snd gp), walkq (fst gq) (snd gq) with
  | Some (lp, ap), Some (lq, aq) =>
    match aid p (fst ap) (snd ap) with
    | Some a =>
      let op := opens lp in let oq := opens lq in
      let np := filter (fun x => negb (is_nil ys && q_passed a aq lq x)) op in
      let nq := filter (fun y => negb (is_nil xs && p_passed a ap lp y)) oq in
      forallb (fun x => availb p x (fst ap) (snd ap)) (xs ++ op) &&
      forallb (fun y => availb q y (fst aq) (snd aq)) (ys ++ oq) &&
      nodupb (xs ++ map fst lp) && nodupb (ys ++ map fst lq) &&
      forallb (fun y => inb y (came X a)) ys && forallb (fun y => inb y (meets X a)) nq &&
      (let (xs', ys') := cancel a (xs ++ np) (ys ++ nq) in
       nats_eqb xs' (only_p X a) && nats_eqb ys' (only_q X a)) &&
      match from with Some n => negb (owed a) || (rank X a <? n) | None => true end
    | None => false
    end
  | _, _ => false
  end.
Definition rank_of (a : nat) : option nat := if owed a then Some (rank X a) else None.
Definition chk_behind (a : nat) (gp gq : nat * nat) : bool :=
  chk_ways (rank_of a) (only_p X a) (only_q X a) gp gq.
(** At an anchor without effect, both versions have equal operands, or it cancels with all that is
    owed. *)
Definition chk_pure (a : nat) (pp pq : nat * nat) (x : nat) (o : op) (c : list nat)
  (y : nat) (o' : op) (c' : list nat) : bool :=
  negb (owed a) && same_ops a c c' ||
  let ep := excused L T H p (by_p X) (fst pp) (snd pp) x o c in
  let eq := excused L T H q (by_q X) (fst pq) (snd pq) y o' c' in
  let (xs, ys) := cancel a (only_p X a ++ if ep then [] else [x])
                           (only_q X a ++ if eq then [] else [y]) in
  is_nil xs && is_nil ys.
Definition chk_owed (a : nat) : bool :=
  let (pp, pq) := pos K a in
  match blk_at p (fst pp), blk_at q (fst pq) with
  | Some Bp, Some Bq =>
    match inst_at Bp (snd pp), inst_at Bq (snd pq) with
    | Some ip, Some iq =>
      match ip, iq with
      | IPure _ x o c, IPure _ y o' c' => chk_pure a pp pq x o c y o' c'
      | _, _ => negb (owed a)
      end && chk_ways None [] [] (fst pp, S (snd pp)) (fst pq, S (snd pq))
    | None, None =>
      negb (owed a && is_nil (les (lt Bp))) &&
      match pairs L T p q K a (lt Bp) (lt Bq) with
      | Some ees => forallb (fun ee : edge * edge => chk_behind a (dst (fst ee), 0)
                                                                (dst (snd ee), 0)) ees
      | None => false
      end
    | _, _ => false
    end
  | _, _ => false
  end.
Definition chk_traps : bool :=
  chk_ways None [] [] (0, 0) (0, 0) &&
  below (nids K) (fun a => negb (reached K a) ||
    (if stop a then negb (owed a) else chk_owed a)).

(** ** Both versions at an anchor, and on the way to one *)
Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis pair_ok : chk_pair L T anch p q K = true.
Hypothesis traps_ok : chk_traps = true.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
Let tok : chk_table L T = true := table_ok L T anch p q K pair_ok.
Let okp : chk_version L T anch p = true := okp L T anch p q K pair_ok.
Let okq : chk_version L T anch q = true := okq L T anch p q K pair_ok.
Let argsq : length args = arity q := args_okq L T anch p q K pair_ok args args_ok.
Notation Gap := (Gap L M T anch p q K args w).
Notation Sync := (Sync L M T anch p q K args w).
Notation event := (@event op V).
Notation calm v := (calm L M T halt anch stop v).
Notation traps v := (traps halt v).
Notation startp := (start p args w).
Notation startq := (start q args w).

(** Operands that decide a trap alike, and the same memory. *)
Definition alike (o : op) (vs vs' : list V) : Prop := vs = vs' \/
  exists n, vouch H o o = Some n /\ firstn n vs = firstn n vs' /\ latest vs = latest vs'.
Lemma alike_halt o vs vs' wd : alike o vs vs' -> halt o vs wd = halt o vs' wd.
Proof.
  intros [->|[n [Vo [Fn _]]]]; auto. pose proof (vouch_ok _ _ _ FT o o n vs vs' wd Vo Fn) as A.
  pose proof (vouch_ok _ _ _ FT o o n vs' vs wd Vo (eq_sym Fn)) as B.
  destruct (halt o vs wd), (halt o vs' wd); auto; symmetry; auto.
Qed.
(** The target version has come to a state without a trap, or its run ends at this trap, in the same
    world and after the same effects. *)
Definition status (s : st V W) (e : option event) : Prop :=
  match e with
  | None => calm q startq s
  | Some (o, vs) => exists s1, calm q startq s1 /\ traps q s1 o vs /\ sw s1 = sw s /\ str s1 = str s
  end.
(** The queues: [ep] and [eq] are the first operations in them that trap. *)
Record Queues (sp sq : st V W) (lp lq : list (nat * event)) (ep eq : option event) : Prop := {
  qu_p : lists p sp lp; qu_q : lists q sq lq;
  qu_ep : first_trap (sw sp) lp = ep; qu_eq : first_trap (sw sq) lq = eq;
  qu_st : status sq eq
}.
(** Operations are listed with the operands that they have. *)
Definition holds (v : version op) (s : st V W) (l : list (nat * event)) : Prop := forall y o vs,
  In (y, (o, vs)) l -> exists a, site_of v y = Some (o, a) /\ vs = contents M T v s a.
Definition Ready (sp sq : st V W) (a : nat) (ep eq : option event) : Prop := Sync sp sq a /\
  exists lp lq, map fst lp = only_p X a /\ map fst lq = only_q X a /\ Queues sp sq lp lq ep eq /\
  holds p sp lp /\ holds q sq lq.
Definition Ways (from : option nat) (gp gq : st V W) (ep eq : option event) : Prop := Gap gp gq /\
  exists lp lq, Queues gp gq lp lq ep eq /\
  chk_ways from (map fst lp) (map fst lq) (sb gp, sk gp) (sb gq, sk gq) = true.

Lemma invp s : reach L M T anch stop p startp s -> Inv p s.
Proof. exact (version_sound L M T anch stop p F rules tok okp args w s args_ok args_ty). Qed.
Lemma invq s : reach L M T anch stop q startq s -> Inv q s.
Proof. exact (version_sound L M T anch stop q F rules tok okq args w s argsq args_ty). Qed.
Lemma operands sp sq a c c' : Sync sp sq a -> same_ops a c c' = true ->
  contents M T p sp c = contents M T q sq c'.
Proof.
  intros Sy Ops. eapply (same_ops_ok L M T anch p q K pair_ok a (ss sp) (ss sq)
    (fun z => D (ss sp) (vcl p z)) (fun z => D (ss sq) (vcl q z))); eauto; apply Sy.
Qed.
Lemma lists_hold v s l : lists v s l ->
  (forall x, In x (map fst l) -> availb v x (sb s) (sk s) = true) -> holds v s l.
Proof.
  intros Ls Av y o vs Iy. destruct (Ls _ _ _ Iy) as [c [Si [_ Ec]]]. exists c. split; auto.
  apply Ec, Av. change y with (fst (y, (o, vs))). now apply in_map.
Qed.
(** Operations that are the same, on operands that decide a trap alike. *)
Lemma same_events sp sq a x y o vs o' vs' lp lq : Sync sp sq a -> same_site a x y = true ->
  holds p sp lp -> holds q sq lq -> In (x, (o, vs)) lp -> In (y, (o', vs')) lq ->
  o = o' /\ alike o vs vs'.
Proof.
  intros Sy Sa Lp Lq Ip Iq. destruct (Lp _ _ _ Ip) as [c [Si ->]].
  destruct (Lq _ _ _ Iq) as [c' [Si' ->]]. unfold same_site in Sa. rewrite Si, Si' in Sa.
  apply andb_true_iff in Sa. destruct Sa as [Eo Ops]. apply (op_eqb_ok _ _ F) in Eo. subst o'.
  split; auto. apply orb_true_iff in Ops. destruct Ops as [Ops|Ops].
  - left. eapply operands; eauto.
  - right. destruct (vouch H o o) as [n|]; [|discriminate]. exists n.
    apply andb_true_iff in Ops. destruct Ops as [O1 O2]. split; auto.
    unfold latest, contents in *. rewrite !firstn_map, !skipn_map, !map_length.
    split; eapply operands; eauto.
Qed.
Lemma cancel_ok sp sq a wd : Sync sp sq a -> forall lp lq, holds p sp lp -> holds q sq lq ->
  (exists o vs vs', first_trap wd lp = Some (o, vs) /\ first_trap wd lq = Some (o, vs') /\
    alike o vs vs') \/
  exists lp' lq', cancel a (map fst lp) (map fst lq) = (map fst lp', map fst lq') /\
    (forall z, In z lp' -> In z lp) /\ (forall z, In z lq' -> In z lq) /\
    first_trap wd lp = first_trap wd lp' /\ first_trap wd lq = first_trap wd lq'.
Proof.
  intro Sy. induction lp as [|[x [o vs]] lp IH]; intros lq Lp Lq.
  { right. exists [], lq. auto. }
  destruct lq as [|[y [o' vs']] lq]; [right; exists ((x, (o, vs)) :: lp), []; auto|].
  cbn [map fst cancel]. destruct (same_site a x y) eqn:Sa.
  2: { right. exists ((x, (o, vs)) :: lp), ((y, (o', vs')) :: lq). auto. }
  destruct (same_events sp sq a x y o vs o' vs' _ _ Sy Sa Lp Lq) as [<- Al]; try (now left).
  cbn [Walk.first_trap]. rewrite <- (alike_halt _ _ _ wd Al).
  destruct (halt o vs wd); [left; exists o, vs, vs'; auto|].
  destruct (IH lq) as [G|[l [m [Q1 [Q2 [Q3 Q4]]]]]]; auto.
  - intros z o1 v1 I. apply Lp. now right.
  - intros z o1 v1 I. apply Lq. now right.
  - right. exists l, m. split; auto. split; [intros z I; right; auto|].
    split; [intros z I; right; auto|auto].
Qed.
(** Operations that do not trap may go. *)
Lemma filter_ok wd (f : nat -> bool) (l : list (nat * event)) :
  (forall x o vs, In (x, (o, vs)) l -> f x = false -> halt o vs wd = false) ->
  exists l', map fst l' = filter f (map fst l) /\ (forall z, In z l' -> In z l) /\
  first_trap wd l' = first_trap wd l.
Proof.
  intro N. exists (filter (fun z => f (fst z)) l). split; [|split].
  - clear N. induction l as [|z l IH]; simpl; auto. destruct (f (fst z)); simpl; congruence.
  - intros z I. apply filter_In in I. tauto.
  - induction l as [|[x [o vs]] l IH]; simpl; auto. destruct (f x) eqn:Fx; simpl.
    + destruct (halt o vs wd); auto. apply IH. intros; eapply N; eauto. now right.
    + rewrite (N x o vs) by (auto; now left). apply IH. intros; eapply N; eauto. now right.
Qed.

(** *** Ways *)
(** All that a run along a way to an anchor shows of the operations on the way. *)
Definition along (v : version op) (s0 g s : st V W) (l : list (nat * bool))
  (tr : list (nat * event)) : Prop := map fst tr = opens l /\
  (forall old, NoDup (map fst old ++ map fst l) -> lists v g old -> lists v s (old ++ tr)) /\
  (forall y o a, ~ In y (map fst l) -> site_of v y = Some (o, a) -> can_trap H o = true ->
    availb v y (sb s) (sk s) = true ->
    availb v y (sb g) (sk g) = true /\ contents M T v s a = contents M T v g a) /\
  (calm v s0 g -> match first_trap (sw g) tr with
    | None => calm v g s
    | Some (o, vs) => exists s1, calm v g s1 /\ traps v s1 o vs /\ sw s1 = sw g /\ str s1 = str g
    end) /\
  (at_anchor v s = true -> calm v g s -> first_trap (sw g) tr = None).
Lemma along_p g s n l z : reach L M T anch stop p startp g -> nreach p g s ->
  at_anchor p s = true -> walk L T H anch p (by_p X) n (sb g) (sk g) = Some (l, z) ->
  z = (sb s, sk s) /\ exists tr, along p startp g s l tr.
Proof.
  intros Rg Ng A Wk. pose proof (invp _ Rg) as I.
  destruct (track L M T H halt anch stop p (by_p X) F rules FT tok okp args w args_ok args_ty g s Ng
    n l z I Wk) as [m [l1 [l2 [tr [Wk2 [El G]]]]]].
  assert (Is: Inv p s) by (eapply (nreach_inv L M T anch stop p F rules tok okp); eauto).
  pose proof (walk_end L M T H anch p (by_p X) s Is A) as We.
  pose proof (walk_same L T H anch p (by_p X) _ _ _ _ _ _ We Wk2) as Q. inversion Q; subst.
  rewrite app_nil_r. split; auto. now exists tr.
Qed.
Lemma along_q g s n l z : reach L M T anch stop q startq g -> nreach q g s ->
  at_anchor q s = true -> walk L T H anch q (by_q X) n (sb g) (sk g) = Some (l, z) ->
  z = (sb s, sk s) /\ exists tr, along q startq g s l tr.
Proof.
  intros Rg Ng A Wk. pose proof (invq _ Rg) as I.
  destruct (track L M T H halt anch stop q (by_q X) F rules FT tok okq args w argsq args_ty g s Ng
    n l z I Wk) as [m [l1 [l2 [tr [Wk2 [El G]]]]]].
  assert (Is: Inv q s) by (eapply (nreach_inv L M T anch stop q F rules tok okq); eauto).
  pose proof (walk_end L M T H anch q (by_q X) s Is A) as We.
  pose proof (walk_same L T H anch q (by_q X) _ _ _ _ _ _ We Wk2) as Q. inversion Q; subst.
  rewrite app_nil_r. split; auto. now exists tr.
Qed.
(** An operation does not trap if one vouches for it that the other version executed before. *)
Lemma q_passed_ok gq sp sq a l tr x o vs lp : calm q startq gq -> along q startq gq sq l tr ->
  Sync sp sq a -> q_passed a (sb sq, sk sq) l x = true -> lists p sp lp -> In (x, (o, vs)) lp ->
  availb p x (sb sp) (sk sp) = true -> halt o vs (sw gq) = false.
Proof.
  intros Cg [_ [_ [Kp _]]] Sy Ps Lp Ix Ax. destruct (Lp _ _ _ Ix) as [c [Si [_ Ec]]].
  rewrite (Ec Ax). apply existsb_exists in Ps. destruct Ps as [y [_ Ps]]. cbn [fst snd] in Ps.
  apply andb_true_iff in Ps. destruct Ps as [Ps Vo]. apply andb_true_iff in Ps.
  destruct Ps as [Ay Ny]. apply negb_true_iff in Ny. unfold q_vouches in Vo. rewrite Si in Vo.
  destruct (site_of q y) as [[o' c']|] eqn:Siy; [|discriminate]. apply andb_true_iff in Vo.
  destruct Vo as [Ct Vo]. destruct (vouch H o' o) as [n|] eqn:Vh; [|discriminate].
  destruct (Kp y o' c') as [Ay' Ey]; auto.
  { intro I. apply inb_In in I. congruence. }
  apply (vouch_ok _ _ _ FT o' o n (contents M T q gq c') _ _ Vh).
  - rewrite <- Ey. unfold contents. rewrite !firstn_map. symmetry.
    exact (operands sp sq a _ _ Sy Vo).
  - exact (calm_flags L M T H halt anch stop q F rules FT tok okq args w argsq args_ty _ Cg _ _ _
      Ay' Siy).
Qed.
Lemma p_passed_ok gp sp sq a l tr y o vs lq : calm p startp gp -> along p startp gp sp l tr ->
  Sync sp sq a -> p_passed a (sb sp, sk sp) l y = true -> lists q sq lq -> In (y, (o, vs)) lq ->
  availb q y (sb sq) (sk sq) = true -> halt o vs (sw gp) = false.
Proof.
  intros Cg [_ [_ [Kp _]]] Sy Ps Lq Iy Ay. destruct (Lq _ _ _ Iy) as [c [Si [_ Ec]]].
  rewrite (Ec Ay). apply existsb_exists in Ps. destruct Ps as [x [_ Ps]]. cbn [fst snd] in Ps.
  apply andb_true_iff in Ps. destruct Ps as [Ps Vo]. apply andb_true_iff in Ps.
  destruct Ps as [Ax Nx]. apply negb_true_iff in Nx. unfold p_vouches in Vo. rewrite Si in Vo.
  destruct (site_of p x) as [[o' c']|] eqn:Six; [|discriminate]. apply andb_true_iff in Vo.
  destruct Vo as [Ct Vo]. destruct (vouch H o' o) as [n|] eqn:Vh; [|discriminate].
  destruct (Kp x o' c') as [Ax' Ex]; auto.
  { intro I. apply inb_In in I. congruence. }
  apply (vouch_ok _ _ _ FT o' o n (contents M T p gp c') _ _ Vh).
  - rewrite <- Ex. unfold contents. rewrite !firstn_map. exact (operands sp sq a _ _ Sy Vo).
  - exact (calm_flags L M T H halt anch stop p F rules FT tok okp args w args_ok args_ty _ Cg _ _ _
      Ax' Six).
Qed.
Lemma status_on gq sq lq tr l : along q startq gq sq l tr -> nreach q gq sq ->
  status gq (first_trap (sw gq) lq) -> status sq (first_trap (sw gq) (lq ++ tr)).
Proof.
  intros [_ [_ [_ [Cm _]]]] Ng St. destruct (nreach_same _ _ _ _ _ _ _ _ Ng) as [Sw Sr].
  rewrite first_app. destruct (first_trap (sw gq) lq) as [[o vs]|].
  - destruct St as [s1 [C1 [T1 [W1 R1]]]]. exists s1. split; auto. split; auto.
    split; congruence.
  - specialize (Cm St). destruct (first_trap (sw gq) tr) as [[o vs]|]; simpl in *.
    + destruct Cm as [s1 [C1 [T1 [W1 R1]]]]. exists s1.
      split; [eapply calm_trans; eauto|]. split; auto. split; congruence.
    + eapply calm_trans; eauto.
Qed.
(** Along a way to the next anchor: either both versions trap alike, or the queues are there what
    the claims say. *)
Lemma ways_ok from gp gq ep eq : Ways from gp gq ep eq -> (ep = None -> calm p startp gp) ->
  exists sp sq a ep' eq', nreach p gp sp /\ nreach q gq sq /\ Sync sp sq a /\
  (forall e, ep = Some e -> ep' = Some e) /\
  (ep = None -> match ep' with
    | None => calm p gp sp
    | Some (o, vs) => exists s1, calm p gp s1 /\ traps p s1 o vs /\ sw s1 = sw gp /\ str s1 = str gp
    end) /\
  (ep = None -> calm p gp sp -> ep' = None) /\
  ((exists o vs vs', ep' = Some (o, vs) /\ alike o vs vs' /\ status sq (Some (o, vs'))) \/
   Ready sp sq a ep' eq') /\
  match from with Some n => owed a = true -> rank X a < n | None => True end.
Proof.
  intros [G [lp [lq [[Lp Lq Ep Eq St] Ch]]]] Cp. unfold chk_ways in Ch. cbn [fst snd] in Ch.
  destruct (walkp (sb gp) (sk gp)) as [[wp ap]|] eqn:Wp; [|discriminate].
  destruct (walkq (sb gq) (sk gq)) as [[wq aq]|] eqn:Wq; [|discriminate].
  destruct (aid p (fst ap) (snd ap)) as [a|] eqn:Id; [|discriminate].
  destruct (gap_sync L M T anch p q K F rules pair_ok args w args_ok args_ty _ _ G)
    as [sp [sq [a0 [Np [Nq Sy]]]]].
  pose proof (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy) as [Anp Anq].
  destruct (along_p gp sp _ _ _ (ga_p _ _ _ _ _ _ _ _ _ _ _ G) Np Anp Wp) as [-> [tp Alp]].
  destruct (along_q gq sq _ _ _ (ga_q _ _ _ _ _ _ _ _ _ _ _ G) Nq Anq Wq) as [-> [tq Alq]].
  cbn [fst snd] in Id, Ch. pose proof (sy_id _ _ _ _ _ _ _ _ _ _ _ _ Sy) as Id0.
  assert (a0 = a) by congruence. subst a0.
  repeat (apply andb_true_iff in Ch; let H1 := fresh "Ch" in destruct Ch as [Ch H1]).
  rename Ch into Avp, Ch0 into Rk, Ch1 into Cn, Ch2 into Cq, Ch3 into Cc, Ch4 into Ndq,
    Ch5 into Ndp, Ch6 into Avq.
  apply nodupb_ok in Ndp. apply nodupb_ok in Ndq. rewrite forallb_forall in Avp, Avq.
  destruct (nreach_same _ _ _ _ _ _ _ _ Np) as [Swp Srp].
  destruct (nreach_same _ _ _ _ _ _ _ _ Nq) as [Swq Srq].
  pose proof (ga_w _ _ _ _ _ _ _ _ _ _ _ G) as Sw.
  pose proof Alp as [Mp [Lsp [_ [Cmp Bkp]]]]. pose proof Alq as [Mq [Lsq _]].
  specialize (Lsp lp Ndp Lp). specialize (Lsq lq Ndq Lq).
  rewrite <- Mp in Avp, Cn. rewrite <- Mq in Avq, Cn. rewrite <- map_app in Avp, Avq.
  pose proof (status_on gq sq lq tq wq Alq Nq) as Stq. rewrite Eq in Stq. specialize (Stq St).
  (* What is excused by the other version goes from the queues. *)
  destruct (filter_ok (sw gp)
    (fun x => negb (is_nil (map fst lq) && q_passed a (sb sq, sk sq) wq x)) tp)
    as [tp' [Mp' [Ip Fp]]].
  { intros x o vs Ix Fx. apply negb_false_iff, andb_true_iff in Fx. destruct Fx as [Nil Ps].
    apply is_nil_ok in Nil. destruct lq; [|discriminate]. simpl in Eq. subst eq.
    rewrite <- Sw. apply (q_passed_ok gq sp sq a wq tq x o vs (lp ++ tp)); auto.
    - apply in_or_app. now right.
    - apply Avp. apply in_map_iff. exists (x, (o, vs)). split; auto. apply in_or_app. now right. }
  destruct (filter_ok (sw gq)
    (fun y => negb (is_nil (map fst lp) && p_passed a (sb sp, sk sp) wp y)) tq)
    as [tq' [Mq' [Iq Fq]]].
  { intros y o vs Iy Fy. apply negb_false_iff, andb_true_iff in Fy. destruct Fy as [Nil Ps].
    apply is_nil_ok in Nil. destruct lp; [|discriminate]. simpl in Ep. subst ep.
    rewrite Sw. apply (p_passed_ok gp sp sq a wp tp y o vs (lq ++ tq)); auto.
    - apply in_or_app. now right.
    - apply Avq. apply in_map_iff. exists (y, (o, vs)). split; auto. apply in_or_app. now right. }
  rewrite <- Mp', <- Mq', <- !map_app in Cn.
  set (ep' := first_trap (sw gp) (lp ++ tp)). set (eq' := first_trap (sw gq) (lq ++ tq)) in *.
  assert (Ep': first_trap (sw gp) (lp ++ tp') = ep') by (unfold ep'; now rewrite !first_app, Fp).
  assert (Eq': first_trap (sw gq) (lq ++ tq') = eq') by (unfold eq'; now rewrite !first_app, Fq).
  assert (Sub: forall (l t t' : list (nat * event)), (forall z, In z t' -> In z t) ->
    forall z, In z (l ++ t') -> In z (l ++ t)).
  { intros l t t' S z I. apply in_app_or in I. apply in_or_app. destruct I; auto. }
  assert (Lsp': lists p sp (lp ++ tp')) by (intros y o vs I; eapply Lsp, Sub; eauto).
  assert (Lsq': lists q sq (lq ++ tq')) by (intros y o vs I; eapply Lsq, Sub; eauto).
  assert (Hp: holds p sp (lp ++ tp')).
  { apply lists_hold; auto. intros x I. apply Avp. apply in_map_iff in I.
    destruct I as [z [<- I]]. apply in_map. eapply Sub; eauto. }
  assert (Hq: holds q sq (lq ++ tq')).
  { apply lists_hold; auto. intros x I. apply Avq. apply in_map_iff in I.
    destruct I as [z [<- I]]. apply in_map. eapply Sub; eauto. }
  destruct (cancel_ok sp sq a (sw gp) Sy (lp ++ tp') (lq ++ tq') Hp Hq)
    as [[o [vs [vs' [E1 [E2 Al]]]]]|Q].
  all: exists sp, sq, a, ep', eq'; split; [exact Np|]; split; [exact Nq|]; split; [exact Sy|].
  all: split; [intros e1 E; unfold ep'; now rewrite first_app, Ep, E|].
  all: split; [intro E; unfold ep'; rewrite first_app, Ep, E; exact (Cmp (Cp E))|].
  all: split; [intros E Cs; unfold ep'; rewrite first_app, Ep, E; exact (Bkp Anp Cs)|].
  all: split; [|destruct from as [n|]; auto; intro Ow; rewrite Ow in Rk;
    now apply Nat.ltb_lt in Rk].
  - left. exists o, vs, vs'. rewrite Ep' in E1. split; auto. split; auto.
    rewrite <- Sw, Eq' in E2. now rewrite <- E2.
  - right. destruct Q as [l' [m' [Cl [Il [Im [F1 F2]]]]]]. split; auto. exists l', m'.
    rewrite Cl in Cn. apply andb_true_iff in Cn. destruct Cn as [C1 C2].
    apply nats_eqb_ok in C1. apply nats_eqb_ok in C2. split; auto. split; auto. split.
    + constructor; auto.
      * intros y o vs I. auto.
      * intros y o vs I. auto.
      * rewrite Swp. congruence.
      * rewrite Swq, Sw. rewrite <- Sw in F2 at 1. congruence.
    + split; intros y o vs I; auto.
Qed.
End Owed.
