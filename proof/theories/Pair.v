(** Two versions side by side: they execute the same anchors in the same order, on equal operands
    ([lockstep], [same_result]). *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths.

(** Claims about both versions. *)
Record claims := Claims {
  nids : nat;                                      (* all ids of anchors are smaller *)
  agree : nat -> set;                              (* by anchor: leaves that agree there *)
  equal : nat -> list (nat * nat);                 (* by anchor: classes that are equal there *)
  reached : nat -> bool;                           (* anchors that runs may reach *)
  stopped : nat -> bool;                           (* anchors whose step is not proved *)
  pos : nat -> (nat * nat) * (nat * nat);          (* where an anchor stands in both versions *)
  asked : nat -> option nat                        (* a term [ne x 0] of a class *)
}.

Definition posb (a b : nat * nat) : bool := (fst a =? fst b) && (snd a =? snd b).
Lemma posb_ok a b : posb a b = true -> a = b.
Proof. destruct a, b. unfold posb. simpl. intro H. bools. congruence. Qed.

Definition is_nil {A} (l : list A) : bool := match l with [] => true | _ => false end.
Lemma is_nil_ok {A} (l : list A) : is_nil l = true -> l = [].
Proof. now destruct l. Qed.

Section Pair.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable anch : nat -> bool.
Variables (p q : version op) (K : claims).
Notation stop := (stopped K).

Notation D := (D M T).
Notation knd := (knd T).
Notation leaf := (leaf T).
Notation AL := (AL T).
Notation constants := (constants L T).
Notation step1 := (step1 L M T anch stop).
Notation reach := (reach L M T anch stop).
Notation nreach := (nreach L M T anch stop).
Notation start := (start M T).
Notation path := (path L T anch).
Notation crosses := (crosses T).
Notation crosses_all := (crosses_all T).
Notation bound_ok := (bound_ok M T).
Notation vcl := (vcl T).
Notation at_anchor := (at_anchor anch).
Notation Inv := (Inv L M T).
Notation live_edges := (live_edges L T).
Notation chk_version := (chk_version L T anch).

(** Paths enter as many blocks as this at most. *)
Definition max_crossings := 258.

(** ** The checks *)
Definition ag (a l : nat) : bool := mem l (agree K a) && leaf l && (l <? tn T).
Definition aid (v : version op) (b k : nat) : option nat :=
  match blk_at v b with None => None | Some B => Some (pid B k) end.
Definition stands_for (b : binds) (l : nat) : option nat :=
  match assoc l b with Some r => r | None => Some l end.
Definition chk_leaf (S0 : nat -> bool) (bp bq : binds) (l : nat) : bool :=
  match stands_for bp l, stands_for bq l with
  | Some c, Some c' => (c =? c') && AL S0 c | _, _ => false
  end.
Definition chk_equal (S0 : nat -> bool) (bp bq : binds) (cd : nat * nat) : bool :=
  match resolve T bp (fst cd), resolve T bq (snd cd) with
  | Some c, Some c' => (c =? c') && AL S0 c | _, _ => false
  end.
Notation way := (option (list crossing * (nat * nat))).
(** Both paths lead to one anchor, and the leaves and classes that are to be equal there are. *)
Definition chk_meet (S0 : nat -> bool) (bp bq : binds) (lp lq : way) : bool :=
  match lp, lq with
  | Some (csp, ap), Some (csq, aq) =>
    match aid p (fst ap) (snd ap), aid q (fst aq) (snd aq) with
    | Some a, Some a' =>
      (a =? a') && (a <? nids K) && reached K a && posb (fst (pos K a)) ap &&
      posb (snd (pos K a)) aq &&
      (let bp' := crosses_all p bp csp in let bq' := crosses_all q bq csq in
       for_all (chk_leaf S0 bp' bq') (agree K a) && forallb (chk_equal S0 bp' bq') (equal K a))
    | _, _ => false
    end
  | _, _ => false
  end.
Definition from (v : version op) (b k : nat) : way := path v max_crossings b k.
Definition chk_start : bool :=
  chk_meet (fun l => match knd l with Some (KArg _) => true | _ => false end) [] []
           (from p 0 0) (from q 0 0).
Definition same_val (a c c' : nat) : bool :=
  ((c =? c') && AL (ag a) c) ||
  existsb (fun cd => (fst cd =? c) && (snd cd =? c')) (equal K a).
Definition same_ops (a : nat) (x x' : list nat) : bool :=
  all2 (fun y y' => same_val a (vcl p y) (vcl q y')) x x'.
(** The classes by which a branch on a class may be decided as well. *)
Definition tests (b : op) (c : nat) : list nat :=
  c :: match asked K c with
       | Some t =>
         if (cls T t =? c) && is_nil (mdep T t) then
           match knd t with
           | Some (KOp o [x; z]) =>
             match constant L T z, constant L T x with
             | Some k, _ => if asks L b o k then [x] else []
             | None, Some k => if asks L b o k then [z] else []
             | None, None => []
             end
           | _ => []
           end
         else []
       | None => []
       end.
Definition same_test (a : nat) (b : op) (x x' : list nat) : bool :=
  match x, x' with
  | [y], [y'] => existsb (fun c => existsb (same_val a c) (tests b (vcl q y'))) (tests b (vcl p y))
  | _, _ => false
  end.
Definition chk_over (S : nat -> bool) (bp bq : nat) (ee : edge * edge) : bool :=
  let (e, e') := ee in
  chk_meet S (crosses p [] (bp, (e, []))) (crosses q [] (bq, (e', [])))
           (from p (dst e) 0) (from q (dst e') 0).
(** The edges over which both versions leave an anchor, and whether the choice is the same. A
    branch of one version may be a jump of the other. *)
Definition pairs (a : nat) (l l' : last op) : option (list (edge * edge)) :=
  if op_eqb L (lo l) (lo l') && (length (les l) =? length (les l')) &&
     (same_ops a (la l) (la l') || negb (is_nil (les l)) && same_test a (lo l) (la l) (la l'))
  then Some (match constants (map (vcl p) (la l)) with
             | Some cs => match edge_no (combine (les l) (les l')) (pick L (lo l) cs) with
                          | Some ee => [ee] | None => [] end
             | None => combine (les l) (les l')
             end)
  else if is_nil (les l) || is_nil (les l') then None
  else Some (list_prod (live_edges p l) (live_edges q l')).
Definition results_of (v : version op) (r : list nat) (l : nat) : bool :=
  existsb (fun x => tm v x =? l) r.
(** The leaves that agree behind an effect. *)
Definition after_effect (a : nat) (r r' : list nat) (l : nat) : bool :=
  if results_of p r l then results_of q r' l else if results_of q r' l then false else ag a l.
Definition chk_anchor (a : nat) : bool :=
  let (pp, pq) := pos K a in
  match blk_at p (fst pp), blk_at q (fst pq) with
  | Some Bp, Some Bq =>
    (pid Bp (snd pp) =? a) && (pid Bq (snd pq) =? a) &&
    match inst_at Bp (snd pp), inst_at Bq (snd pq) with
    | Some (IEff i o x r), Some (IEff i' o' x' r') =>
      op_eqb L o o' && (length r =? length r') && same_ops a x x' &&
      chk_meet (after_effect a r r') [] []
        (from p (fst pp) (S (snd pp))) (from q (fst pq) (S (snd pq)))
    | Some (IPure i _ o x), Some (IPure i' _ o' x') =>
      (* The contents of operands are no part of the claim here: each version computes its own. *)
      op_eqb L o o' &&
      chk_meet (ag a) [] [] (from p (fst pp) (S (snd pp))) (from q (fst pq) (S (snd pq)))
    | None, None =>
      anch a &&
      match pairs a (lt Bp) (lt Bq) with
      | Some ees => forallb (chk_over (ag a) (fst pp) (fst pq)) ees
      | None => false
      end
    | _, _ => false
    end
  | _, _ => false
  end.
Definition chk_anchors : bool :=
  below (nids K) (fun a => negb (reached K a) || stop a || chk_anchor a).
Definition chk_pair : bool :=
  chk_table L T && chk_version p && chk_version q && (arity p =? arity q) && chk_start &&
  chk_anchors.

(** ** Lockstep *)
Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis pair_ok : chk_pair = true.
Lemma table_ok : chk_table L T = true.
Proof. unfold chk_pair in pair_ok. bools. auto. Qed.
Lemma okp : chk_version p = true.
Proof. unfold chk_pair in pair_ok. bools. auto. Qed.
Lemma okq : chk_version q = true.
Proof. unfold chk_pair in pair_ok. bools. auto. Qed.
Lemma okstart : chk_start = true.
Proof. unfold chk_pair in pair_ok. bools. auto. Qed.
Lemma okanch a : a < nids K -> reached K a = true -> stop a = false -> chk_anchor a = true.
Proof.
  intros A Rc St. unfold chk_pair in pair_ok. bools.
  match goal with H : chk_anchors = true |- _ => pose proof (below_ok _ _ H _ A) as G end.
  simpl in G. rewrite Rc, St in G. exact G.
Qed.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
Lemma args_okq : length args = arity q.
Proof. unfold chk_pair in pair_ok. bools. congruence. Qed.

Lemma invp s : reach p (start p args w) s -> Inv p s.
Proof. exact (version_sound L M T anch stop p F rules table_ok okp args w s args_ok args_ty). Qed.
Lemma invq s : reach q (start q args w) s -> Inv q s.
Proof. exact (version_sound L M T anch stop q F rules table_ok okq args w s args_okq args_ty). Qed.

Definition Agree (S : nat -> bool) (s s' : nat -> V) := forall l, S l = true -> s l = s' l.
Lemma agree_D S s s' c : Agree S s s' -> AL S c = true -> D s c = D s' c.
Proof. intros A H. eapply (AL_agree L M T table_ok); eauto. Qed.

(** Both versions are before the anchor [a]. *)
Record Sync (sp sq : st V W) (a : nat) : Prop := {
  sy_p : reach p (start p args w) sp; sy_q : reach q (start q args w) sq;
  sy_at : pos K a = ((sb sp, sk sp), (sb sq, sk sq));
  sy_lt : a < nids K; sy_in : reached K a = true;
  sy_w : sw sq = sw sp; sy_tr : str sq = str sp;
  sy_agree : Agree (ag a) (ss sp) (ss sq);
  sy_equal : forall c c', In (c, c') (equal K a) -> D (ss sp) c = D (ss sq) c';
  sy_anchor : at_anchor p sp = true /\ at_anchor q sq = true;
  sy_id : aid p (sb sp) (sk sp) = Some a
}.
(** Both versions are where a pair of paths to an anchor starts. *)
Record Gap (gp gq : st V W) : Prop := {
  ga_p : reach p (start p args w) gp; ga_q : reach q (start q args w) gq;
  ga_w : sw gq = sw gp; ga_tr : str gq = str gp;
  ga_rel : exists S0 sp0 sq0 bp bq, bound_ok bp sp0 (ss gp) /\ bound_ok bq sq0 (ss gq) /\
    Agree S0 sp0 sq0 /\
    chk_meet S0 bp bq (from p (sb gp) (sk gp)) (from q (sb gq) (sk gq)) = true
}.
Lemma stands_ok b s0 s l c : bound_ok b s0 s -> leaf l = true -> stands_for b l = Some c ->
  s l = D s0 c.
Proof.
  intros [_ Bo] Lf E. unfold stands_for in E. specialize (Bo l). destruct (assoc l b) as [r|].
  - subst r. auto.
  - inversion E; subst c. rewrite Bo. symmetry. now apply D_leaf.
Qed.
Lemma gap_sync gp gq : Gap gp gq ->
  exists ep eq a, nreach p gp ep /\ nreach q gq eq /\ Sync ep eq a.
Proof.
  intros [Rp Rq Ew Et [S0 [sp0 [sq0 [bp [bq [Bp [Bq [A Mt]]]]]]]]]. unfold chk_meet, from in Mt.
  destruct (path p max_crossings (sb gp) (sk gp)) as [[csp ap]|] eqn:Lp; [|discriminate].
  destruct (path q max_crossings (sb gq) (sk gq)) as [[csq aq]|] eqn:Lq; [|discriminate].
  destruct (aid p (fst ap) (snd ap)) as [a|] eqn:Ap; [|discriminate].
  destruct (aid q (fst aq) (snd aq)) as [a'|] eqn:Aq; [|discriminate].
  repeat rewrite andb_true_iff in Mt. destruct Mt as [[[[[Q Nl] I] Pp] Pq] [Lf Eq]].
  apply Nat.eqb_eq in Q. subst a'. apply Nat.ltb_lt in Nl.
  destruct (path_run L M T anch stop p F rules table_ok okp _ gp bp sp0 csp ap (invp _ Rp) Lp Bp)
    as [ep [Np [Xp [Yp Zp]]]].
  destruct (path_run L M T anch stop q F rules table_ok okq _ gq bq sq0 csq aq (invq _ Rq) Lq Bq)
    as [eq [Nq [Xq [Yq Zq]]]].
  exists ep, eq, a. split; auto. split; auto.
  destruct (nreach_same _ _ _ _ _ _ _ _ Np) as [Wp Tp].
  destruct (nreach_same _ _ _ _ _ _ _ _ Nq) as [Wq Tq].
  constructor; try congruence; auto.
  - eapply nreach_reach; eauto.
  - eapply nreach_reach; eauto.
  - apply posb_ok in Pp. apply posb_ok in Pq. destruct (pos K a). simpl in *. congruence.
  - intros l Hl. unfold ag in Hl. bools. pose proof (for_all_ok _ _ _ Lf H) as G.
    unfold chk_leaf in G.
    destruct (stands_for (crosses_all p bp csp) l) as [c|] eqn:Ep; [|discriminate].
    destruct (stands_for (crosses_all q bq csq) l) as [c'|] eqn:Eq'; [|discriminate].
    bools. subst c'.
    rewrite (stands_ok _ _ _ _ _ Zp H1 Ep), (stands_ok _ _ _ _ _ Zq H1 Eq'). eapply agree_D; eauto.
  - intros c c' Hc. rewrite forallb_forall in Eq. apply Eq in Hc. unfold chk_equal in Hc.
    simpl in Hc.
    destruct (resolve T (crosses_all p bp csp) c) as [d|] eqn:Ep; [|discriminate].
    destruct (resolve T (crosses_all q bq csq) c') as [d'|] eqn:Eq'; [|discriminate].
    bools. subst d'. rewrite (resolve_ok L M T table_ok _ _ _ _ _ Zp Ep).
    rewrite (resolve_ok L M T table_ok _ _ _ _ _ Zq Eq'). eapply agree_D; eauto.
  - rewrite <- Ap. f_equal; rewrite <- Xp; reflexivity.
Qed.

Lemma same_val_ok a s s' c c' : same_val a c c' = true -> Agree (ag a) s s' ->
  (forall c c', In (c, c') (equal K a) -> D s c = D s' c') -> D s c = D s' c'.
Proof.
  unfold same_val. intros H A E. apply orb_true_iff in H. destruct H as [H|H].
  - bools. subst. eapply agree_D; eauto.
  - apply existsb_exists in H. destruct H as [[d d'] [I Q]]. simpl in Q. bools. subst. auto.
Qed.
Lemma same_ops_ok a s s' (ep eq : nat -> V) x : forall x', same_ops a x x' = true ->
  Agree (ag a) s s' -> (forall c c', In (c, c') (equal K a) -> D s c = D s' c') ->
  (forall y, In y x -> ep y = D s (vcl p y)) -> (forall y, In y x' -> eq y = D s' (vcl q y)) ->
  map ep x = map eq x'.
Proof.
  induction x as [|y x IH]; intros [|y' x'] H A E Hp Hq; simpl in *; try discriminate; auto.
  apply andb_true_iff in H. destruct H as [H1 H2]. f_equal.
  - rewrite Hp, Hq by auto. eapply same_val_ok; eauto.
  - apply IH; auto.
Qed.
Lemma tests_ok b s c u : TL M T s -> In u (tests b c) -> choose M b [D s u] = choose M b [D s c].
Proof.
  intros Ts [<-|I]; auto. destruct (asked K c) as [t|]; [|contradiction].
  destruct ((cls T t =? c) && is_nil (mdep T t)) eqn:Ct; [|contradiction].
  apply andb_true_iff in Ct. destruct Ct as [Ct Md]. apply Nat.eqb_eq in Ct. apply is_nil_ok in Md.
  destruct (knd t) as [[n0| |i n0|o [|x [|z [|]]]]|] eqn:Kt; try contradiction.
  rewrite <- Ct, <- (class_sound L M T F rules table_ok _ Ts)
    by (intros m; rewrite Md; intros []).
  rewrite (D_op L M T table_ok _ _ _ _ Kt). simpl.
  destruct (constant L T z) as [k|] eqn:Cz.
  - destruct (asks L b o k) eqn:As; [|contradiction]. destruct I as [<-|[]].
    rewrite (constant_D L M T F table_ok _ _ s Cz). symmetry. now apply (asks_ok _ _ F).
  - destruct (constant L T x) as [k|] eqn:Cx; [|contradiction].
    destruct (asks L b o k) eqn:As; [|contradiction]. destruct I as [<-|[]].
    rewrite (constant_D L M T F table_ok _ _ s Cx). symmetry. now apply (asks_ok _ _ F).
Qed.

(** The edge that a version takes at the end of a block, and the state behind it. *)
Lemma side_edge v s B : chk_version v = true -> Inv v s -> blk_at v (sb s) = Some B ->
  inst_at B (sk s) = None -> forall e, taken M (lt B) (se s) = Some e ->
  In e (live_edges v (lt B)) /\ exists s', enter T v s e = Some s' /\ sb s' = dst e /\ sk s' = 0 /\
  sw s' = sw s /\ str s' = str s /\ bound_ok (crosses v [] (sb s, (e, []))) (ss s) (ss s').
Proof.
  intros Ok I E N e Tk. destruct (inv_at _ _ _ _ _ I) as [B0 [E0 K0]].
  replace B0 with B in * by congruence. apply inst_none in N. assert (Kl: sk s = bn B) by lia.
  destruct (block_ok _ _ _ _ Ok _ _ (inv_live _ _ _ _ _ I) E) as [_ [_ [_ CL]]].
  assert (Le: In e (live_edges v (lt B))).
  { apply (taken_live L M T v F table_ok s); auto. intros x A. apply (inv_right _ _ _ _ _ I).
    now rewrite Kl. }
  split; auto. assert (CE: chk_edge L T v (sb s) (bn B) e = true).
  { unfold chk_last in CL. apply andb_true_iff in CL. destruct CL as [_ CL].
    rewrite forallb_forall in CL. auto. }
  destruct (edge_ok _ _ _ _ _ _ CE) as [B' [E' _]].
  assert (X: exists s', enter T v s e = Some s' /\ sb s' = dst e /\ sk s' = 0 /\ sw s' = sw s /\
    str s' = str s).
  { unfold enter. rewrite E'. eexists. split; [reflexivity|]. simpl. auto. }
  destruct X as [s' [En [Sb [Sk [Sw St]]]]]. exists s'. repeat split; auto.
  - eapply (cross_bound L M T v table_ok s B e [] e s'); eauto; [now left|apply bound_nil].
  - eapply (cross_bound L M T v table_ok s B e [] e s'); eauto; [now left|apply bound_nil].
Qed.
Lemma step_end v s B e : blk_at v (sb s) = Some B -> inst_at B (sk s) = None ->
  (is_anch anch B (sk s) && stop (pid B (sk s))) = false -> taken M (lt B) (se s) = Some e ->
  step1 v s = enter T v s e.
Proof. intros E N St Tk. unfold Version.step1. now rewrite E, St, N, Tk. Qed.
Lemma end_at v s B : Inv v s -> blk_at v (sb s) = Some B -> inst_at B (sk s) = None -> sk s = bn B.
Proof.
  intros I E N. destruct (inv_at _ _ _ _ _ I) as [B0 [E0 K0]]. apply inst_none in N.
  replace B0 with B in * by congruence. lia.
Qed.
Lemma args_avail v b len l x : chk_last L T v b len l = true -> In x (la l) ->
  availb v x b len = true.
Proof.
  unfold chk_last. intros H I. apply andb_true_iff in H. destruct H as [H _].
  rewrite forallb_forall in H. auto.
Qed.

(** Both versions leave the end of a block together. *)
Lemma pairs_ok a l l' ees (sp sq : st V W) e : TL M T (ss sp) -> TL M T (ss sq) ->
  pairs a l l' = Some ees ->
  Agree (ag a) (ss sp) (ss sq) ->
  (forall c c', In (c, c') (equal K a) -> D (ss sp) c = D (ss sq) c') ->
  (forall y, In y (la l) -> se sp y = D (ss sp) (vcl p y)) ->
  (forall y, In y (la l') -> se sq y = D (ss sq) (vcl q y)) ->
  taken M l (se sp) = Some e -> In e (live_edges p l) ->
  (forall e', taken M l' (se sq) = Some e' -> In e' (live_edges q l')) ->
  exists e', taken M l' (se sq) = Some e' /\ In (e, e') ees.
Proof.
  unfold pairs. intros Tp Tq H A E Hp Hq Tk Le Lq.
  destruct (op_eqb L (lo l) (lo l') && (length (les l) =? length (les l')) &&
     (same_ops a (la l) (la l') || negb (is_nil (les l)) && same_test a (lo l) (la l) (la l')))
       eqn:G.
  - inversion H; subst ees; clear H. bools. apply (op_eqb_ok _ _ F) in H.
    assert (Ch: choose M (lo l) (map (se sp) (la l)) = choose M (lo l') (map (se sq) (la l'))).
    { rewrite <- H. apply orb_true_iff in H0. destruct H0 as [H0|H0].
      - f_equal. eapply same_ops_ok; eauto.
      - bools. unfold same_test in H2. destruct (la l) as [|y [|]]; try discriminate.
        destruct (la l') as [|y' [|]]; try discriminate.
        apply existsb_exists in H2. destruct H2 as [u [Iu H2]].
        apply existsb_exists in H2. destruct H2 as [u' [Iu' H2]].
        simpl. rewrite (Hp y), (Hq y') by now left.
        rewrite <- (tests_ok _ (ss sp) _ _ Tp Iu), <- (tests_ok _ (ss sq) _ _ Tq Iu').
        now rewrite (same_val_ok _ _ _ _ _ H2 A E). }
    unfold taken in Tk |- *. destruct (edge_no_some (les l') (choose M (lo l') (map (se sq)
      (la l'))))
      as [e' Te'].
    { intro Nil. rewrite Nil in H1. destruct (les l); [|discriminate]. unfold edge_no in Tk.
      destruct (choose M (lo l) _); discriminate. }
    exists e'. split; auto. rewrite Ch in Tk. pose proof (edge_no_pair _ _ _ _ _ H1 Tk Te') as Ep.
    destruct (constants (map (vcl p) (la l))) as [cs|] eqn:Cs; [|eapply edge_no_in; eauto].
    apply (constants_D L M T F table_ok) with (s := ss sp) in Cs.
    assert (Q: map (se sp) (la l) = map (val M) cs).
    { rewrite <- Cs, map_map. apply map_ext_in. auto. }
    rewrite <- Ch, Q, (pick_ok _ _ F) in Ep. rewrite Ep. now left.
  - destruct (is_nil (les l) || is_nil (les l')) eqn:Nl; [discriminate|]. inversion H; subst ees.
    apply orb_false_iff in Nl. destruct Nl as [_ Nl].
    destruct (edge_no_some (les l') (choose M (lo l') (map (se sq) (la l')))) as [e' Te'].
    { intro Nil. rewrite Nil in Nl. discriminate. }
    exists e'. split; auto. apply in_prod; auto.
Qed.

Lemma results_find v o r rs l :
  let lr := combine r (pad L M o (length r) rs) in
  (results_of v r l = false /\ find (fun y => tm v (fst y) =? l) lr = None) \/
  exists x c, results_of v r l = true /\ find (fun y => tm v (fst y) =? l) lr = Some (x, c) /\
    In (x, c) lr /\ tm v x = l.
Proof.
  intro lr. assert (Len: length (pad L M o (length r) rs) = length r)
    by (unfold pad; now rewrite map_length, seq_length).
  destruct (find (fun y => tm v (fst y) =? l) lr) as [[x c]|] eqn:Fd.
  - right. exists x, c. apply find_some in Fd. destruct Fd as [I Q]. simpl in Q.
    split; [|split; [auto|split; [auto|now apply Nat.eqb_eq]]].
    unfold results_of. apply existsb_exists. exists x. split; auto. eapply in_combine_l; eauto.
  - left. split; auto. unfold results_of. destruct (existsb _ r) eqn:Ex; auto.
    apply existsb_exists in Ex. destruct Ex as [x [Ix Qx]].
    destruct (in_combine r _ x Len Ix) as [c Hc]. apply (find_none _ _ Fd) in Hc. simpl in Hc.
      congruence.
Qed.

(** One anchor further. *)
Lemma sync_step sp sq a sp' : Sync sp sq a -> step1 p sp = Some sp' ->
  exists sq', step1 q sq = Some sq' /\ Gap sp' sq'.
Proof.
  intros [Rp Rq At Lt_a In_a Ew Et Ag Eqs [Anp Anq] Id] St. pose proof St as St0.
  pose proof (invp _ Rp) as Ip. pose proof (invq _ Rq) as Iq.
  unfold Paths.at_anchor in Anp, Anq. unfold Version.step1 in St. unfold aid in Id.
  destruct (blk_at p (sb sp)) as [Bp|] eqn:Ep; [|discriminate]. rewrite Anp in St. simpl in St.
  destruct (stop (pid Bp (sk sp))) eqn:Sp; [discriminate|].
  assert (Ida: pid Bp (sk sp) = a) by congruence. rewrite Ida in Sp.
  pose proof (okanch _ Lt_a In_a Sp) as CA. unfold chk_anchor in CA. rewrite At in CA.
  cbn [fst snd] in CA. rewrite Ep in CA.
  destruct (blk_at q (sb sq)) as [Bq|] eqn:Eq; [|discriminate].
  apply andb_true_iff in CA. destruct CA as [CA Ck]. apply andb_true_iff in CA.
  destruct CA as [_ Idq]. apply Nat.eqb_eq in Idq.
  destruct (block_ok _ _ _ _ okp _ _ (inv_live _ _ _ _ _ Ip) Ep) as [_ [_ [BIp CLp]]].
  destruct (block_ok _ _ _ _ okq _ _ (inv_live _ _ _ _ _ Iq) Eq) as [_ [_ [BIq CLq]]].
  assert (Stq: is_anch anch Bq (sk sq) && stop (pid Bq (sk sq)) = false)
    by (now rewrite Idq, Sp, andb_false_r).
  destruct (inst_at Bp (sk sp)) as [[i x o y|i o y r]|] eqn:Np;
  destruct (inst_at Bq (sk sq)) as [[i' x' o' y'|i' o' y' r']|] eqn:Nq; try discriminate.
  - bools. inversion St; subst sp'; clear St.
    eexists. split. { unfold Version.step1. rewrite Eq, Stq, Nq. reflexivity. }
    constructor; simpl; auto.
    + eapply RS; eauto.
    + eapply RS; eauto. unfold Version.step1. rewrite Eq, Stq, Nq. reflexivity.
    + do 5 eexists. split; [apply bound_nil|]. split; [apply bound_nil|]. split; [exact Ag|].
      assumption.
  - apply andb_true_iff in Ck. destruct Ck as [Ck Mt]. apply andb_true_iff in Ck.
    destruct Ck as [Ck Ops]. apply andb_true_iff in Ck. destruct Ck as [Eo Lr].
    apply (op_eqb_ok _ _ F) in Eo. apply Nat.eqb_eq in Lr. subst o'.
    assert (i = a) by (unfold pid in Ida; now rewrite Np in Ida).
    assert (i' = a) by (unfold pid in Idq; now rewrite Nq in Idq). subst i i'.
    assert (Resp: forall rs x c, In (x, c) (combine r (pad L M o (length r) rs)) -> exists n,
      knd (tm p x) = Some (KRes a n) /\ c = nth n rs (dflt M (ety L o n))).
    { intros rs x c I. destruct (in_results L M _ _ _ _ _ I) as [n [Hn ->]]. exists n. split; auto.
      now destruct (res_kind L T anch p _ _ _ _ _ _ _ _ (BIp _ _ Np) Hn). }
    assert (Resq: forall rs x c, In (x, c) (combine r' (pad L M o (length r') rs)) -> exists n,
      knd (tm q x) = Some (KRes a n) /\ c = nth n rs (dflt M (ety L o n))).
    { intros rs x c I. destruct (in_results L M _ _ _ _ _ I) as [n [Hn ->]]. exists n. split; auto.
      now destruct (res_kind L T anch q _ _ _ _ _ _ _ _ (BIq _ _ Nq) Hn). }
    pose proof (BIp _ _ Np) as Cp. pose proof (BIq _ _ Nq) as Cq. simpl in Cp, Cq. bools.
    repeat match goal with H : forallb _ _ = true |- _ => rewrite forallb_forall in H end.
    assert (Mx: map (se sp) y = map (se sq) y').
    { eapply same_ops_ok; eauto.
      - intros z Hz. apply (inv_right _ _ _ _ _ Ip). auto.
      - intros z Hz. apply (inv_right _ _ _ _ _ Iq). auto. }
    destruct (effsem M o (map (se sp) y) (sw sp)) as [w' rs] eqn:Es. inversion St; subst sp';
      clear St.
    set (lq := combine r' (pad L M o (length r') rs)).
    assert (Sq: step1 q sq = Some (St (sb sq) (S (sk sq)) (assign lq (se sq)) w' (str sq ++ [a])
      (bindr q lq (ss sq)))).
    { unfold Version.step1. now rewrite Eq, Stq, Nq, <- Mx, Ew, Es. }
    eexists. split; [exact Sq|]. constructor; simpl; auto.
    + eapply RS; eauto.
    + eapply RS; eauto.
    + now rewrite Et.
    + do 5 eexists. split; [apply bound_nil|]. split; [apply bound_nil|]. split; [|exact Mt].
      intros l Hl. rewrite !bindr_find. subst lq.
      destruct (results_find p o r rs l) as [[Np' ->]|[x [c [Np' [-> [Ix Qx]]]]]];
      destruct (results_find q o r' rs l) as [[Nq' ->]|[x' [c' [Nq' [-> [Ix' Qx']]]]]];
      unfold after_effect in Hl; rewrite Np', Nq' in Hl; try discriminate; auto.
      destruct (Resp _ _ _ Ix) as [n [Kn ->]]. destruct (Resq _ _ _ Ix') as [n' [Kn' ->]].
      assert (n = n') by congruence. now subst.
  - apply andb_true_iff in Ck. destruct Ck as [_ Ck].
    destruct (taken M (lt Bp) (se sp)) as [e|] eqn:Tk; [|discriminate].
    destruct (pairs a (lt Bp) (lt Bq)) as [ees|] eqn:Pr; [|discriminate].
    pose proof (end_at _ _ _ Ip Ep Np) as Kp. pose proof (end_at _ _ _ Iq Eq Nq) as Kq.
    destruct (side_edge p sp Bp okp Ip Ep Np e Tk) as [Le [s1 [En [Sb1 [Sk1 [Sw1 [St1 Bo1]]]]]]].
    assert (s1 = sp') by congruence. subst s1.
    destruct (pairs_ok _ _ _ _ sp sq e (inv_typed _ _ _ _ _ Ip) (inv_typed _ _ _ _ _ Iq) Pr Ag Eqs)
      as [e' [Tk' Ie]]; auto.
    { intros z Hz. apply (inv_right _ _ _ _ _ Ip). rewrite Kp. eapply args_avail; eauto. }
    { intros z Hz. apply (inv_right _ _ _ _ _ Iq). rewrite Kq. eapply args_avail; eauto. }
    { intros e' Te'. now destruct (side_edge q sq Bq okq Iq Eq Nq e' Te'). }
    destruct (side_edge q sq Bq okq Iq Eq Nq e' Tk') as [_ [sq' [En' [Sb2 [Sk2 [Sw2 [St2 Bo2]]]]]]].
    exists sq'. assert (Sq: step1 q sq = Some sq') by (now rewrite (step_end _ _ _ _ Eq Nq Stq
      Tk')).
    split; auto. constructor; try congruence.
    + eapply RS; eauto.
    + eapply RS; eauto.
    + rewrite forallb_forall in Ck. apply Ck in Ie. unfold chk_over in Ie.
      do 5 eexists. split; [exact Bo1|]. split; [exact Bo2|]. split; [exact Ag|].
      rewrite Sb1, Sk1, Sb2, Sk2. exact Ie.
Qed.
Lemma gap_start : Gap (start p args w) (start q args w).
Proof.
  constructor; try (constructor); auto.
  do 5 eexists. split; [apply bound_nil|]. split; [apply bound_nil|]. split; [|exact okstart].
  intros l Hl. simpl. destruct (knd l) as [[n| |i n|o x]|]; auto; discriminate.
Qed.

(** Wherever one version comes, it has come there from the start of a pair of paths to which the
    other has come as well, in the same world and after the same effects. *)
Theorem lockstep sp : reach p (start p args w) sp -> exists gp gq, Gap gp gq /\ nreach p gp sp.
Proof.
  induction 1 as [|s s' Rc [gp [gq [G N]]] St].
  - exists (start p args w), (start q args w). split; [apply gap_start|constructor].
  - destruct (at_anchor p s) eqn:A.
    + destruct (gap_sync _ _ G) as [ep [eq [a [Np [Nq Sy]]]]].
      assert (ep = s).
      { pose proof (nreach_on _ _ _ _ _ _ _ _ _ N Np (proj1 (sy_anchor _ _ _ Sy))) as X.
        eapply nreach_anchor; eauto. }
      subst ep. destruct (sync_step _ _ _ _ Sy St) as [sq' [_ G']]. exists s', sq'. split; auto.
      constructor.
    + exists gp, gq. split; auto. eapply nreach_step; eauto.
Qed.

(** The observable end of a run: its last terminator, a return or a trap, and the operands that it
    shows, memory among them. *)
Definition ends (v : version op) (s : st V W) (o : op) (vs : list V) : Prop :=
  exists B, blk_at v (sb s) = Some B /\ inst_at B (sk s) = None /\ les (lt B) = [] /\
  lo (lt B) = o /\ anch (li (lt B)) = true /\ stop (li (lt B)) = false /\ vs = map (se s)
    (la (lt B)).
(** If one version ends, the other ends alike, in a run that has a property of all runs from the
    start of the pair of paths. *)
Lemma result_from (Rn : st V W -> Prop) gp gq sp o vs : (forall e, nreach q gq e -> Rn e) ->
  Gap gp gq -> nreach p gp sp -> ends p sp o vs ->
  exists sq, Rn sq /\ ends q sq o vs /\ sw sq = sw sp /\ str sq = str sp.
Proof.
  intros Fw G Ng [B [E [N [Nil [Lo [An [Sp Vs]]]]]]].
  destruct (gap_sync _ _ G) as [ep [eq [a [Np [Nq Sy]]]]].
  assert (A: at_anchor p sp = true) by (unfold Paths.at_anchor, is_anch; now rewrite E, N).
  assert (ep = sp).
  { pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ng Np (proj1 (sy_anchor _ _ _ Sy))) as X.
    eapply nreach_anchor; eauto. }
  subst ep. destruct Sy as [Rp Rq At Lt_a In_a Ew Et Ag Eqs _ Id]. exists eq. split; auto.
  split; [|split; congruence]. pose proof (invp _ Rp) as Ip. pose proof (invq _ Rq) as Iq.
  unfold aid in Id. rewrite E in Id. assert (Ida: pid B (sk sp) = a) by congruence.
  assert (La: li (lt B) = a) by (unfold pid in Ida; now rewrite N in Ida). rewrite La in Sp.
  pose proof (okanch _ Lt_a In_a Sp) as CA. unfold chk_anchor in CA. rewrite At in CA.
  cbn [fst snd] in CA. rewrite E, N in CA.
  destruct (blk_at q (sb eq)) as [Bq|] eqn:Eq; [|discriminate].
  apply andb_true_iff in CA. destruct CA as [CA Ck]. apply andb_true_iff in CA.
  destruct CA as [_ Idq]. apply Nat.eqb_eq in Idq.
  destruct (inst_at Bq (sk eq)) as [[| ]|] eqn:Nq'; try discriminate.
  assert (Lq: li (lt Bq) = a) by (unfold pid in Idq; now rewrite Nq' in Idq).
  bools. unfold pairs in H0. rewrite Nil in H0. simpl in H0.
  destruct (op_eqb L (lo (lt B)) (lo (lt Bq)) && _ && _) eqn:Gd; [|discriminate].
  apply andb_true_iff in Gd. destruct Gd as [Gd Ops]. apply andb_true_iff in Gd.
  destruct Gd as [Eo Ln]. apply (op_eqb_ok _ _ F) in Eo. rewrite orb_false_r in Ops.
  exists Bq. repeat split; auto; try congruence.
  { destruct (les (lt Bq)); [auto|discriminate]. }
  destruct (block_ok _ _ _ _ okp _ _ (inv_live _ _ _ _ _ Ip) E) as [_ [_ [_ CLp]]].
  destruct (block_ok _ _ _ _ okq _ _ (inv_live _ _ _ _ _ Iq) Eq) as [_ [_ [_ CLq]]].
  subst vs. eapply same_ops_ok; eauto.
  - intros y Hy. apply (inv_right _ _ _ _ _ Ip). rewrite (end_at _ _ _ Ip E N).
    eapply args_avail; eauto.
  - intros y Hy. apply (inv_right _ _ _ _ _ Iq). rewrite (end_at _ _ _ Iq Eq Nq').
    eapply args_avail; eauto.
Qed.
Theorem same_result sp o vs : reach p (start p args w) sp -> ends p sp o vs ->
  exists sq, reach q (start q args w) sq /\ ends q sq o vs /\ sw sq = sw sp /\ str sq = str sp.
Proof.
  intros Rc En. destruct (lockstep _ Rc) as [gp [gq [G Ng]]].
  apply (result_from _ gp gq); auto. intros e Ne. eapply nreach_reach; eauto.
  exact (ga_q _ _ G).
Qed.
End Pair.
