(** Paths: the way of a version from a point to the next anchor, and the leaves that it binds.

    A path is found by looking at the text. The lemmas say that every run follows it ([path_run])
    and, where no block on it has another predecessor, that every run to its end came along it
    ([back_path]). *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound.

(** The block that is left, the edge, and the other edges of the terminator that may be taken and
    lead to the same block. *)
Definition crossing := (nat * (edge * list edge))%type.
Definition into (x : crossing) : nat := dst (fst (snd x)).
(** The classes of leaves in terms of the leaves where a path starts; [None] if no class is known.
  *)
Definition binds := list (nat * option nat).
Fixpoint assoc (l : nat) (b : binds) : option (option nat) :=
  match b with [] => None | (x, c) :: r => if x =? l then Some c else assoc l r end.
Definition unbound (b : binds) (l : nat) : bool :=
  match assoc l b with None => true | Some _ => false end.
Definition oeqb (a b : option nat) : bool :=
  match a, b with Some x, Some y => x =? y | None, None => true | _, _ => false end.
Lemma oeqb_ok a b : oeqb a b = true -> a = b.
Proof. destruct a, b; simpl; intro H; try discriminate; auto. apply Nat.eqb_eq in H. now subst. Qed.
Lemma assoc_app l a b :
  assoc l (a ++ b) = match assoc l a with Some r => Some r | None => assoc l b end.
Proof. induction a as [|[x c] r IH]; simpl; auto. destruct (x =? l); auto. Qed.

Section Paths.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable anch : nat -> bool.
Variable stop : nat -> bool.
Variable v : version op.

Notation D := (D M T).
Notation AL := (AL T).
Notation leaf := (leaf T).
Notation vcl := (vcl T v).
Notation leafb := (leafb T v).
Notation blk_at := (blk_at v).
Notation availb := (availb v).
Notation is_anch := (is_anch anch).
Notation live_edges := (live_edges L T v).
Notation enter := (enter T v).
Notation step1 := (step1 L M T anch stop v).
Notation reach := (reach L M T anch stop v).
Notation Inv := (Inv L M T v).
Notation chk_version := (chk_version L T anch v).
Notation chk_edge := (chk_edge L T v).

(** ** The checks *)
Definition next_anch (B : blk op) (k : nat) : option nat := first_in (bn B - k) k (is_anch B).
(** The only block that the edges lead to. *)
Definition one_way (es : list edge) : option (edge * list edge) :=
  match es with
  | e :: r => if forallb (fun e' => dst e' =? dst e) r then Some (e, r) else None
  | [] => None
  end.
Fixpoint path (fuel b k : nat) : option (list crossing * (nat * nat)) :=
  match fuel with
  | 0 => None
  | S n =>
    match blk_at b with
    | None => None
    | Some B =>
      match next_anch B k with
      | Some j => Some ([], (b, j))
      | None =>
        if anch (li (lt B)) then Some ([], (b, bn B))
        else match one_way (live_edges (lt B)) with
             | Some x =>
               match path n (dst (fst x)) 0 with
               | Some (cs, a) => Some ((b, x) :: cs, a) | None => None
               end
             | None => None
             end
      end
    end
  end.
(** A class in terms of the start of the path. *)
Definition resolve (b : binds) (c : nat) : option nat :=
  match b with
  | [] => Some c
  | _ => match assoc c b with
         | Some r => r
         | None => if AL (unbound b) c then Some c else None
         end
  end.
Definition binds_over (b : binds) (e : edge) : binds :=
  match blk_at (dst e) with
  | None => []
  | Some B' => map (fun xa : nat * nat => (tm v (fst xa), resolve b (vcl (snd xa))))
                   (filter (fun xa : nat * nat => leafb (dst e) (fst xa)) (combine (ps B') (ea e)))
  end.
Definition agreed (b : binds) (es : list edge) (lc : nat * option nat) : nat * option nat :=
  let (l, c) := lc in
  (l, if forallb (fun e => match assoc l (binds_over b e) with
                           | Some c' => oeqb c c' | None => false end) es
      then c else None).
Definition crosses (b : binds) (x : crossing) : binds :=
  let (e, es) := snd x in
  match es with [] => binds_over b e | _ => map (agreed b es) (binds_over b e) end ++ b.
Definition crosses_all (b : binds) (cs : list crossing) : binds := fold_left crosses cs b.
(** Whether only this block leads to another. *)
Definition only_from (P b : nat) : bool := match sole v b with Some Q => Q =? P | None => false end.

(** ** Runs without anchors *)
Definition at_anchor (s : st V W) : bool :=
  match blk_at (sb s) with None => true | Some B => is_anch B (sk s) end.
(** A run between two states that executes no anchor. *)
Inductive nreach : st V W -> st V W -> Prop :=
| N0 s : nreach s s
| NS s s1 s' : at_anchor s = false -> step1 s = Some s1 -> nreach s1 s' -> nreach s s'.
Lemma nreach_trans a b c : nreach a b -> nreach b c -> nreach a c.
Proof. induction 1; auto. intro. econstructor; eauto. Qed.
Lemma nreach_step a b c : nreach a b -> at_anchor b = false -> step1 b = Some c -> nreach a c.
Proof. intros. eapply nreach_trans; eauto. econstructor; eauto. constructor. Qed.
Lemma nreach_reach s0 a b : nreach a b -> reach s0 a -> reach s0 b.
Proof. induction 1; auto. intro. apply IHnreach. econstructor; eauto. Qed.
(** A run to an anchor passed every place on the way. *)
Lemma nreach_on a b e : nreach a b -> nreach a e -> at_anchor e = true -> nreach b e.
Proof.
  induction 1 as [|s s1 s' N S Rn IH]; auto. intros H A. inversion H; subst; [congruence|].
  apply IH; auto. congruence.
Qed.
Lemma nreach_anchor a b : nreach a b -> at_anchor a = true -> b = a.
Proof. intros H A. inversion H; subst; auto. congruence. Qed.
Lemma nreach_same a b : nreach a b -> sw b = sw a /\ str b = str a.
Proof.
  induction 1 as [|s s1 s' A S Rn [IH1 IH2]]; auto. unfold at_anchor in A.
  unfold Version.step1 in S. destruct (blk_at (sb s)) as [B|]; [|discriminate].
  rewrite A in S. simpl in S. unfold Version.is_anch in A.
  destruct (inst_at B (sk s)) as [[i x o a|i o a r]|]; simpl in A; try discriminate.
  - inversion S; subst. simpl in *. auto.
  - destruct (taken M (lt B) (se s)); [|discriminate]. unfold Version.enter in S.
    destruct (blk_at (dst e)); [|discriminate]. inversion S; subst. simpl in *. auto.
Qed.

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis table_ok : chk_table L T = true.
Hypothesis version_ok : chk_version = true.

Lemma nreach_inv a b : nreach a b -> Inv a -> Inv b.
Proof. induction 1; auto. intro. apply IHnreach. eapply inv_step; eauto. Qed.

(** ** What a path binds *)
Definition leaves_only (b : binds) := forall l r, assoc l b = Some r -> leaf l = true.
Definition bound_ok (b : binds) (s0 s : nat -> V) := leaves_only b /\
  forall l, match assoc l b with
            | Some (Some c) => s l = D s0 c | Some None => True | None => s l = s0 l end.
Lemma bound_nil s : bound_ok [] s s.
Proof. split; [intros l r H; discriminate|simpl; auto]. Qed.
Lemma unbound_agree b s0 s c : bound_ok b s0 s -> AL (unbound b) c = true -> D s c = D s0 c.
Proof.
  intros [_ H] U. eapply (AL_agree L M T table_ok); eauto. intros l Hl. specialize (H l).
  unfold unbound in Hl. destruct (assoc l b); [discriminate|auto].
Qed.
Lemma resolve_ok b s0 s c c' : bound_ok b s0 s -> resolve b c = Some c' -> D s c = D s0 c'.
Proof.
  intros Bo Rs. unfold resolve in Rs. destruct b as [|x b].
  - inversion Rs; subst. apply (unbound_agree [] s0 s c' Bo).
    unfold Terms.AL. destruct (leaf c'); auto. now apply forallb_forall.
  - destruct Bo as [Lf H]. pose proof (H c) as Hc.
    destruct (assoc c (x :: b)) as [r|] eqn:A.
    + subst r. rewrite (D_leaf M T) by eauto. auto.
    + destruct (AL (unbound (x :: b)) c) eqn:U; [|discriminate]. inversion Rs; subst c'.
      apply unbound_agree with (b := x :: b); auto. split; auto.
Qed.
Lemma assoc_over l b B' e : blk_at (dst e) = Some B' ->
  assoc l (binds_over b e) = option_map (fun xa : nat * nat => resolve b (vcl (snd xa)))
    (find (fun y => leafb (dst e) (fst y) && (tm v (fst y) =? l)) (combine (ps B') (ea e))).
Proof.
  intro E. unfold binds_over. rewrite E.
  induction (combine (ps B') (ea e)) as [|[x a] r IH]; simpl; auto.
  destruct (leafb (dst e) x) eqn:Lx; simpl; auto. destruct (tm v x =? l); simpl; auto.
Qed.
Lemma over_bound s BP e s' b s0 : Inv s -> blk_at (sb s) = Some BP -> sk s = bn BP ->
  chk_edge (sb s) (bn BP) e = true -> enter s e = Some s' -> bound_ok b s0 (ss s) ->
  bound_ok (binds_over b e ++ b) s0 (ss s').
Proof.
  intros I EP K CE N H. destruct (edge_ok _ _ _ _ _ _ CE) as [B' [E' [L' [_ [Len [Av [_ _]]]]]]].
  unfold Version.enter in N. rewrite E' in N. inversion N; subst s'; clear N. simpl. split.
  - intros l r A. rewrite assoc_app, (assoc_over _ _ _ _ E') in A.
    destruct (find _ (combine (ps B') (ea e))) as [[x a]|] eqn:Fd; simpl in A.
    + apply find_some in Fd. destruct Fd as [_ Fd]. simpl in Fd. bools. subst l.
      now destruct (leafb_param L T _ table_ok _ _ H0) as [_ [_ [? _]]].
    + destruct H as [H _]. eapply H; eauto.
  - intro l. rewrite assoc_app, (assoc_over _ _ _ _ E').
    rewrite bindl_find, (find_combine (fun y => leafb (dst e) y && (tm v y =? l))).
    destruct (find (fun y => leafb (dst e) (fst y) && (tm v (fst y) =? l))
                   (combine (ps B') (ea e))) as [[x a]|] eqn:Fd; simpl.
    + destruct (resolve b (vcl a)) as [c|] eqn:Rs; auto. rewrite <- (resolve_ok _ _ _ _ _ H Rs).
      apply (inv_right _ _ _ _ _ I). rewrite K. apply Av. apply find_some in Fd.
      destruct Fd as [Fd _]. eapply in_combine_r; eauto.
    + destruct H as [_ H]. apply H.
Qed.
Lemma assoc_agreed b es l m : assoc l (map (agreed b es) m) =
  option_map (fun c => snd (agreed b es (l, c))) (assoc l m).
Proof.
  induction m as [|[x c] m IH]; auto. simpl. destruct (x =? l) eqn:Q; auto.
  apply Nat.eqb_eq in Q. now subst.
Qed.
(** Whichever edge of a crossing is taken, the leaves hold what the crossing binds them to. *)
Lemma cross_bound s BP e es e' s' b s0 : Inv s -> blk_at (sb s) = Some BP -> sk s = bn BP ->
  In e' (e :: es) -> dst e' = dst e -> chk_edge (sb s) (bn BP) e' = true ->
  chk_edge (sb s) (bn BP) e = true ->
  enter s e' = Some s' -> bound_ok b s0 (ss s) -> bound_ok (crosses b (sb s, (e, es))) s0 (ss s').
Proof.
  intros I EP K In' De CE' CE N H. pose proof (over_bound _ _ _ _ _ _ I EP K CE' N H) as G.
  unfold crosses. simpl. destruct es as [|e1 es].
  { destruct In' as [<-|[]]. exact G. }
  set (es' := e1 :: es) in *. clearbody es'. destruct (edge_ok _ _ _ _ _ _ CE)
    as [B' [E' [_ [_ [Len _]]]]].
  assert (E'': blk_at (dst e') = Some B') by (now rewrite De).
  destruct (edge_ok _ _ _ _ _ _ CE') as [B2 [E2 [_ [_ [Len' _]]]]].
  assert (B2 = B') by congruence. subst B2.
  (* Both edges bind the same leaves. *)
  assert (Dom: forall l, assoc l (binds_over b e) = None <-> assoc l (binds_over b e') = None).
  { intro l. rewrite (assoc_over _ _ _ _ E'), (assoc_over _ _ _ _ E''), De.
    clear -Len Len'. revert Len Len'. generalize (ea e) (ea e'). induction (ps B') as [|x xs IH];
      intros [|a la] [|a' la'] Q Q'; simpl in *; try discriminate; try tauto.
    destruct (leafb (dst e) x && (tm v x =? l)); simpl; [split; discriminate|]. apply IH; lia. }
  destruct G as [Lf G]. split.
  - intros l r A. rewrite assoc_app, assoc_agreed in A.
    destruct (assoc l (binds_over b e')) as [c'|] eqn:A'.
    + apply (Lf l c'). rewrite assoc_app. now rewrite A'.
    + rewrite (proj2 (Dom l) A') in A. simpl in A. apply (Lf l r). rewrite assoc_app.
      now rewrite A'.
  - intro l. specialize (G l). rewrite assoc_app in G |- *. rewrite assoc_agreed.
    destruct (assoc l (binds_over b e)) as [c|] eqn:A; simpl.
    + destruct (forallb (fun e0 => match assoc l (binds_over b e0) with
        | Some c' => oeqb c c' | None => false end) es') eqn:Fa; auto. destruct c as [c|]; auto.
      assert (A': assoc l (binds_over b e') = Some (Some c)).
      { destruct In' as [<-|In']; auto. rewrite forallb_forall in Fa. apply Fa in In'.
        destruct (assoc l (binds_over b e')) as [c'|]; [|discriminate]. apply oeqb_ok in In'.
        now subst. }
      now rewrite A' in G.
    + now rewrite (proj1 (Dom l) A) in G.
Qed.

(** ** Runs follow paths *)
Lemma pure_run (B : blk op) j : forall s, blk_at (sb s) = Some B -> sk s <= j -> j <= bn B ->
  (forall m, sk s <= m -> m < j -> is_anch B m = false) ->
  exists s', nreach s s' /\ sb s' = sb s /\ sk s' = j /\ ss s' = ss s.
Proof.
  intros s E Lj Mj H. remember (j - sk s) as d. revert s E Lj H Heqd.
  induction d as [|d IH]; intros s E Lj H Q.
  - exists s. repeat split; [constructor|lia].
  - assert (Hn: is_anch B (sk s) = false) by (apply H; lia).
    assert (A0: at_anchor s = false) by (unfold at_anchor; now rewrite E).
    assert (X: exists s1, step1 s = Some s1 /\ sb s1 = sb s /\ sk s1 = S (sk s) /\ ss s1 = ss s).
    { unfold Version.step1. rewrite E, Hn. simpl. unfold Version.is_anch in Hn.
      destruct (inst_at B (sk s)) as [[i x o a|i o a r]|] eqn:N; simpl in Hn; try discriminate.
      - eexists. split; [reflexivity|]. simpl. auto.
      - apply inst_none in N. lia. }
    destruct X as [s1 [S1 [Sb [Sk Ss]]]]. destruct (IH s1) as [s' [Rn [X [Y Z]]]]; try congruence;
      try lia.
    { intros m Lm Mm. apply H; lia. }
    exists s'. repeat split; try congruence. econstructor; eauto.
Qed.
Lemma end_anchor (B : blk op) : is_anch B (bn B) = anch (li (lt B)).
Proof. unfold Version.is_anch. now rewrite (proj2 (inst_none B (bn B))) by lia. Qed.
Lemma one_way_in es e r : one_way es = Some (e, r) -> es = e :: r /\ forall e', In e' es ->
  dst e' = dst e.
Proof.
  unfold one_way. destruct es as [|e0 r0]; [discriminate|].
  destruct (forallb (fun e' => dst e' =? dst e0) r0) eqn:Fa; [|discriminate].
  intro H. inversion H; subst. split; auto. intros e' [<-|I]; auto. rewrite forallb_forall in Fa.
  apply Fa in I. now apply Nat.eqb_eq.
Qed.
(** The edge that a run takes, and the state behind it. [None] of [taken] is ruled out by the
    check of operands alone if every operand decides. *)
Lemma go_on s B : Inv s -> blk_at (sb s) = Some B -> sk s = bn B -> anch (li (lt B)) = false ->
  forall e, taken M (lt B) (se s) = Some e ->
  In e (live_edges (lt B)) /\ chk_edge (sb s) (bn B) e = true /\
  exists s', enter s e = Some s' /\ step1 s = Some s' /\ sb s' = dst e /\ sk s' = 0.
Proof.
  intros I E K A e Tk. destruct (block_ok _ _ _ _ version_ok _ _ (inv_live _ _ _ _ _ I) E)
    as [_ [_ [_ CL]]].
  assert (Le: In e (live_edges (lt B))).
  { apply (taken_live L M T v F table_ok s); auto. intros x Ax. apply (inv_right _ _ _ _ _ I).
    now rewrite K. }
  assert (CE: chk_edge (sb s) (bn B) e = true).
  { unfold chk_last in CL. apply andb_true_iff in CL. destruct CL as [_ CL].
    rewrite forallb_forall in CL. auto. }
  split; auto. split; auto. destruct (edge_ok _ _ _ _ _ _ CE) as [B' [E' _]].
  assert (X: exists s', enter s e = Some s' /\ sb s' = dst e /\ sk s' = 0).
  { unfold Version.enter. rewrite E'. eexists. split; [reflexivity|]. auto. }
  destruct X as [s' [En [Sb Sk]]]. exists s'. split; auto. split; auto.
  unfold Version.step1. rewrite E, K, end_anchor, A. simpl.
  now rewrite (proj2 (inst_none B (bn B))) by lia; rewrite Tk.
Qed.

(** A run follows its path. *)
Lemma path_run : forall fuel s b s0 cs a, Inv s -> path fuel (sb s) (sk s) = Some (cs, a) ->
  bound_ok b s0 (ss s) ->
  exists s', nreach s s' /\ (sb s', sk s') = a /\ at_anchor s' = true /\
  bound_ok (crosses_all b cs) s0 (ss s').
Proof.
  induction fuel as [|n IH]; intros s b s0 cs a I H Bo; simpl in H; [discriminate|].
  destruct (blk_at (sb s)) as [B|] eqn:E; [|discriminate].
  destruct (inv_at _ _ _ _ _ I) as [B0 [E0 K0]]. replace B0 with B in * by congruence.
  destruct (next_anch B (sk s)) as [j|] eqn:N.
  - inversion H; subst. destruct (first_in_some _ _ _ _ N) as [X [Y [Z U]]].
    destruct (pure_run B j s E X) as [s' [Rn [P [Q Tt]]]]; auto; try lia.
    exists s'. split; auto. split; [congruence|]. split; [|rewrite Tt; exact Bo].
    unfold at_anchor. now rewrite P, E, Q.
  - destruct (pure_run B (bn B) s E K0) as [s1 [Rn [P [Q Tt]]]]; auto.
    { intros m Lm Mm. eapply first_in_none; eauto. lia. }
    destruct (anch (li (lt B))) eqn:An.
    + inversion H; subst. exists s1. split; auto. split; [congruence|]. split; [|rewrite Tt;
      exact Bo].
      unfold at_anchor. now rewrite P, E, Q, end_anchor.
    + destruct (one_way (live_edges (lt B))) as [[e es]|] eqn:OW; [|discriminate]. simpl in H.
      destruct (path n (dst e) 0) as [[cs' a']|] eqn:Ln; [|discriminate].
      inversion H; subst cs a'. clear H. pose proof (nreach_inv _ _ Rn I) as I1.
      assert (E1: blk_at (sb s1) = Some B) by congruence.
      destruct (one_way_in _ _ _ OW) as [LE Same].
      assert (Tk: exists e', taken M (lt B) (se s1) = Some e').
      { unfold taken. apply edge_no_some. intro Nil. unfold Version.live_edges in LE.
        rewrite Nil in LE. destruct (constants L T _); simpl in LE; try discriminate.
        unfold edge_no in LE. destruct (pick L _ _); discriminate. }
      destruct Tk as [e' Tk]. destruct (go_on s1 B I1 E1 Q An e' Tk)
        as [Le [CE [s2 [En [S1 [Sb Sk]]]]]].
      assert (De: dst e' = dst e) by (apply Same; auto).
      assert (CE0: chk_edge (sb s1) (bn B) e = true).
      { destruct (block_ok _ _ _ _ version_ok _ _ (inv_live _ _ _ _ _ I1) E1) as [_ [_ [_ CL]]].
        unfold chk_last in CL. apply andb_true_iff in CL. destruct CL as [_ CL].
        rewrite forallb_forall in CL. apply CL. rewrite LE. now left. }
      assert (I2: Inv s2) by (eapply inv_step; eauto).
      destruct (IH s2 (crosses b (sb s, (e, es))) s0 cs' a I2) as [s' [R' [X [Y Z]]]].
      * now rewrite Sb, Sk, De.
      * rewrite <- P. eapply cross_bound; eauto; [now rewrite <- LE|now rewrite Tt].
      * exists s'. split; auto. eapply nreach_trans; eauto. apply NS with s2; auto.
        unfold at_anchor. now rewrite E1, Q, end_anchor.
Qed.

(** ** Looking back: the only way to the end of a path *)
(** The states of a run from [s0]: each but the first has one before it. *)
Section Back.
Variables (Rn : st V W -> Prop) (s0 : st V W).
Hypothesis came : forall s, Rn s -> s = s0 \/ exists s', Rn s' /\ step1 s' = Some s.
Lemma back_in_block B k : sk s0 = 0 -> forall s, Rn s -> blk_at (sb s) = Some B -> k <= sk s ->
  (forall m, k <= m -> m < sk s -> is_anch B m = false) ->
  exists s1, Rn s1 /\ sb s1 = sb s /\ sk s1 = k /\ nreach s1 s.
Proof.
  intros Z s. remember (sk s - k) as d. revert s Heqd. induction d as [|d IH];
    intros s Q Rc E Lk H.
  - exists s. repeat split; auto; [lia|constructor].
  - destruct (came _ Rc) as [->|[s' [R' St]]]; [lia|].
    assert (G: sb s = sb s' /\ sk s = S (sk s')).
    { unfold Version.step1 in St. destruct (blk_at (sb s')) as [B1|]; [|discriminate].
      destruct (is_anch B1 (sk s') && stop _); [discriminate|].
      destruct (inst_at B1 (sk s')) as [[i x o a|i o a r]|].
      - inversion St; subst; auto.
      - destruct (effsem M o (map (se s') a) (sw s')). inversion St; subst; auto.
      - destruct (taken M (lt B1) (se s')) as [e|]; [|discriminate]. unfold Version.enter in St.
        destruct (blk_at (dst e)); [|discriminate]. inversion St; subst. simpl in *. lia. }
    destruct G as [G1 G2]. rewrite G1 in *. destruct (IH s') as [s1 [R1 [X [Y W1]]]]; auto; try lia.
    { intros m Lm Mm. apply H; lia. }
    exists s1. repeat split; auto. eapply nreach_step; eauto. unfold at_anchor. rewrite E.
    apply H; lia.
Qed.
Lemma back_edge s P BP e : (forall x, Rn x -> Inv x) -> Rn s -> sb s0 = 0 ->
  sk s = 0 -> sb s = dst e -> dst e <> 0 -> blk_at P = Some BP -> only_from P (dst e) = true ->
  anch (li (lt BP)) = false ->
  exists s1, Rn s1 /\ sb s1 = P /\ sk s1 = bn BP /\ nreach s1 s.
Proof.
  intros AI Rc Z K Sb N EP O An. destruct (came _ Rc) as [->|[s1 [R1 St]]]; [congruence|].
  pose proof (AI _ R1) as I1. destruct (inv_at _ _ _ _ _ I1) as [B1 [E1 K1]].
  assert (G: bn B1 <= sk s1 /\ exists e', taken M (lt B1) (se s1) = Some e' /\ dst e' = dst e).
  { unfold Version.step1 in St. rewrite E1 in St.
    destruct (is_anch B1 (sk s1) && stop _); [discriminate|].
    destruct (inst_at B1 (sk s1)) as [[i x o a|i o a r]|] eqn:Q.
    - inversion St; subst. simpl in K. discriminate.
    - destruct (effsem M o (map (se s1) a) (sw s1)). inversion St; subst. simpl in K. discriminate.
    - split; [now apply inst_none|]. destruct (taken M (lt B1) (se s1)) as [e'|]; [|discriminate].
      exists e'. split; auto. unfold Version.enter in St. destruct (blk_at (dst e'));
        [|discriminate].
      inversion St; subst. simpl in Sb. congruence. }
  destruct G as [Q [e' [Pk De]]]. assert (Kl: sk s1 = bn B1) by lia.
  destruct (block_ok _ _ _ _ version_ok _ _ (inv_live _ _ _ _ _ I1) E1) as [_ [_ [_ CL]]].
  assert (LE: In e' (live_edges (lt B1))).
  { apply (taken_live L M T v F table_ok s1); auto. intros x A. apply (inv_right _ _ _ _ _ I1).
    now rewrite Kl. }
  assert (PP: sb s1 = P).
  { unfold chk_last in CL. apply andb_true_iff in CL. destruct CL as [_ CL].
    rewrite forallb_forall in CL. apply CL in LE. unfold Version.chk_edge, chk_sole in LE.
    apply andb_true_iff in LE. destruct LE as [LE _]. rewrite De in LE. unfold only_from in O.
    destruct (sole v (dst e)); [|discriminate]. bools. congruence. }
  assert (BP = B1) by congruence. subst BP. exists s1. repeat split; auto.
  econstructor; eauto; [|constructor]. unfold at_anchor. now rewrite E1, Kl, end_anchor.
Qed.
(** Every run to the end of a path passed its start, if no block on it has another predecessor. *)
Lemma back_path s : (forall x, Rn x -> Inv x) -> Rn s -> sb s0 = 0 -> sk s0 = 0 ->
  forall fuel b k cs, path fuel b k = Some (cs, (sb s, sk s)) ->
  (forall B, blk_at b = Some B -> k <= bn B) ->
  forallb (fun x : crossing => only_from (fst x) (into x) && negb (into x =? 0)) cs = true ->
  exists s1, Rn s1 /\ sb s1 = b /\ sk s1 = k /\ nreach s1 s.
Proof.
  intros AI Rc Z0 Z1. induction fuel as [|n IH]; intros b k cs H Lk J; simpl in H; [discriminate|].
  destruct (blk_at b) as [B|] eqn:E; [|discriminate]. specialize (Lk _ eq_refl).
  destruct (next_anch B k) as [j|] eqn:N.
  - inversion H; subst. destruct (first_in_some _ _ _ _ N) as [X [Y [Zz U]]].
    destruct (back_in_block B k Z1 s Rc E X U) as [s1 [? [? [? ?]]]]. exists s1; auto.
  - destruct (anch (li (lt B))) eqn:An.
    + inversion H; subst. destruct (back_in_block B k Z1 s Rc E) as [s1 [? [? [? ?]]]]; try lia.
      { intros m Lm Mm. eapply first_in_none; eauto; lia. } exists s1; auto.
    + destruct (one_way (live_edges (lt B))) as [[e es]|] eqn:OW; [|discriminate]. simpl in H.
      destruct (path n (dst e) 0) as [[cs' a']|] eqn:Ln; [|discriminate].
      inversion H; subst cs a'. clear H. simpl in J. unfold into in J at 1 2. simpl in J.
      apply andb_true_iff in J. destruct J as [J J2]. apply andb_true_iff in J.
        destruct J as [J1 J0].
      destruct (IH (dst e) 0 cs' Ln) as [s2 [R2 [S2 [K2 W2]]]]; auto; [intros; lia|].
      destruct (back_edge s2 b B e AI R2 Z0 K2 S2) as [s1 [R1 [S1 [K1 W1]]]]; auto.
      { intro Q. rewrite Q in J0. discriminate. }
      destruct (back_in_block B k Z1 s1 R1) as [s3 [R3 [S3 [K3 W3]]]]; try lia; try congruence.
      { intros m Lm Mm. eapply first_in_none; eauto; lia. }
      exists s3. repeat split; auto; try congruence.
      eapply nreach_trans; [exact W3|]. eapply nreach_trans; eauto.
Qed.
End Back.
Lemma reach_came s0 s : reach s0 s -> s = s0 \/ exists s', reach s0 s' /\ step1 s' = Some s.
Proof. destruct 1; eauto. Qed.
End Paths.
