(** Entries out of a version with inlined code, into several activations: [out_right].

    An accepted entry leads to the copy, where a run is a stack of activations of the originals
    ([copy_out]). Each of these goes on to a version of its function, by an accepted entry there:
    the innermost before an instruction, and each other one before its call, where it waits. A value
    that is needed behind the call is one that the activation is given, or a result of the call. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Hops Traps Walk Owed Matched Landing Real Journey Copy CopyStep
  Activations Across Into.

(** One activation of an entry: where it lands, what it is assigned, and the accepted entry that it
    goes on by. *)
Record land (op : Type) := Land { where_ : nat * nat; gives : map_ operand; onward : entry op }.
Arguments Land {op}. Arguments where_ {op}. Arguments gives {op}. Arguments onward {op}.
Record fentry (op : Type) := FEntry {
  fsrc : nat * nat; freq : set; fsteps : list (step op);
  frames : list (land op)                  (* the innermost first *)
}.
Arguments FEntry {op}. Arguments fsrc {op}. Arguments freq {op}. Arguments fsteps {op}.
Arguments frames {op}.

Section Frames.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variables (callee : op -> option nat) (returns : op -> bool).
Notation cert := (@cert op R).
Notation calm c := (Traps.calm L M (ctab c) halt (canc c) nowhere (cver c)).
Notation stepc c := (step1 L M (ctab c) (canc c) nowhere (cver c)).
Notation startc c := (start M (ctab c) (cver c)).
Notation good := (good L M (can_trap H)).
Notation fires := (fires L H).

(** By instance: the certificate from its original to the version where activations of it land. *)
Variable lc : nat -> cert.
Variable K : copies op R.
Notation lq id := (code_q (lc id)).

(** ** The check *)
Section Check.
Variables (E1 : entry op) (E : fentry op) (from_ : nat -> list origin).
Definition given_in (id : nat) (E2 : entry op) (y : nat) : option nat :=
  if availb (cver (orig K id)) y (fst (src E2)) (snd (src E2)) then Some (naming K id y) else None.
Definition follows (id : nat) (f : land op) : next op :=
  NextEntry (onward f) (given_in id (onward f)).
Fixpoint chain (id : nat) (fs : list (land op)) : list (next op) :=
  match fs with [] => [] | f :: r => follows id f :: chain (fst (caller K id)) r end.
(** The results of the call before which an activation waits, if both versions stand there. *)
Definition waits_at (id : nat) (f : land op) : option (list nat) :=
  let c := lc id in let (b, k) := tgt (onward f) in
  match aid (cp c) (fst (src (onward f))) (snd (src (onward f))), blk_at (cq c) b with
  | Some a, Some B =>
    match inst_at B k with
    | Some (IEff _ _ _ r) =>
      if posb (snd (pos (ck c) a)) (b, k) && negb (stopped (ck c) a) then Some r else None
    | _ => None
    end
  | _, _ => None
  end.
Definition has (f : land op) (x : nat) : bool :=
  match get x (gives f) with Some _ => true | None => false end.
Definition chk_land (j id : nat) (at_ : nat * nat) (f : land op) : bool :=
  posb (src (onward f)) at_ && posb (where_ f) (tgt (onward f)) &&
  each (fun x o => match get x (assigns (onward f)) with
                   | Some o2 => is_next E1 (freq E) from_ (length (fsteps E)) j
                                  (length (steps (onward f))) (follows id f) o o2
                   | None => false end) (gives f) &&
  (let (b, k) := tgt (onward f) in
   match j with
   | 0 => for_all (has f) (cneed (lc id) b k)
   | S _ => match waits_at id f with
            | Some r => for_all (fun x => inb x r || has f x) (cneed (lc id) b (S k))
            | None => false
            end
   end).
Fixpoint chk_lands (j id : nat) (at_ : nat * nat) (fs : list (land op)) : bool :=
  match fs with
  | [] => false
  | f :: r =>
    chk_land j id at_ f &&
    match r with
    | [] => id =? 0
    | _ => (0 <? id) && chk_lands (S j) (fst (caller K id)) (snd (caller K id)) r
    end
  end.
Definition chk_out_entry : bool :=
  let (b, j) := tgt E1 in let (id, at_) := begins K b in
  posb (fsrc E) (src E1) &&
  chk_steps L E1 (nth_error (chain id (frames E))) (freq E) (fsteps E) from_ &&
  chk_lands 0 id (fst at_, snd at_ + j) (frames E).
End Check.

Hypothesis F : Faithful L M.
Hypothesis FT : TrapFaithful H M halt.

(** ** Worlds only grow *)
Lemma calm_later c a b o vs : calm c a b -> halt o vs (sw a) = false -> halt o vs (sw b) = false.
Proof.
  intros Cm Ha. induction Cm as [|s s' Cm IH Ps St]; auto. unfold step1 in St.
  destruct (blk_at (cver c) (sb s)) as [B|]; [|discriminate]. unfold nowhere in St.
  rewrite andb_false_r in St. destruct (inst_at B (sk s)) as [[i x o1 y|i o1 y r]|].
  - inversion St; subst. exact IH.
  - destruct (effsem M o1 (map (se s) y) (sw s)) as [w' rs] eqn:Es. inversion St; subst. simpl.
    replace w' with (fst (effsem M o1 (map (se s) y) (sw s))) by (now rewrite Es).
    now apply (halt_later _ _ _ FT).
  - destruct (taken M (lt B) (se s)) as [e|]; [|discriminate]. unfold enter in St.
    destruct (blk_at (cver c) (dst e)); [|discriminate]. inversion St; subst. exact IH.
Qed.
Lemma pass_later env k w w' : (forall o vs, halt o vs w = false -> halt o vs w' = false) ->
  forall rs, steps_pass M halt env k rs w -> steps_pass M halt env k rs w'.
Proof. intro Lt. induction k as [|s k IH]; intros rs P; simpl in *; auto. destruct P. auto. Qed.

(** ** One activation lands *)
Lemma land_one c E2 args w s  : good c -> fires c E2 -> length args = arity (cp c) ->
  args_typed M (ct c) args -> calm (code_p c) (startc (code_p c) args w) s ->
  (sb s, sk s) = src E2 -> exists t, calm (code_q c) (startc (code_q c) args w) t /\
  (sb t, sk t) = tgt E2 /\ sw t = sw s /\ str t = str s /\
  (forall x o, get x (assigns E2) = Some o -> fire M E2 (se s) o = se t x) /\
  steps_pass M halt (se s) (steps E2) [] (sw s).
Proof.
  intros S [A [X [h [f [Tr [P Y]]]]]] Len Ta Cm At. pose proof S as [Rl Ok].
  destruct (real_right L M (ct c) H halt (canch c) (cp c) (cq c) (ck c) X (cpast c)
    (cahead c) (cneed c) (carmed c) F Rl FT Ok Tr args w Len Ta E2 h f s A Y P Cm At)
    as [t [Ct [Att [Ew [Et Right]]]]].
  exists t. split; auto. split; auto. split; auto. split; auto.
  destruct (Right (se s) (se t) (fun x _ => eq_refl)) as [Sp [Pv _]]. split; auto.
  intros x o Gx. rewrite <- (Pv _ _ Gx). simpl. unfold fired. now rewrite Gx.
Qed.
Lemma eff_grows c s t B i o a r : blk_at (cver c) (sb s) = Some B ->
  inst_at B (sk s) = Some (IEff i o a r) -> run L M (ctab c) (canc c) (cver c) s t ->
  str t = str s -> t = s.
Proof.
  intros E N Rn Q. destruct (reach_first L M (ctab c) (canc c) (cver c) nowhere _ _ Rn)
    as [->|[s1 [St Rest]]]; auto. exfalso.
  rewrite (step_c L M c _ _ E), N in St. destruct (effsem M o (map (se s) a) (sw s)) as [w' rs].
  inversion St; subst s1; clear St.
  destruct (grows L M (ctab c) (canc c) (cver c) _ _ Rest) as [l [Ql _]]. simpl in Ql.
  rewrite Q in Ql. rewrite <- !app_assoc in Ql. rewrite <- (app_nil_r (str s)) in Ql at 1.
  apply app_inv_head in Ql. discriminate.
Qed.
(** An activation that waits lands before the same call, with the same operands. *)
Lemma land_call id f args w s B i o a r r0 : let c := lc id in good c -> fires c (onward f) ->
  length args = arity (cp c) -> args_typed M (ct c) args ->
  calm (code_p c) (startc (code_p c) args w) s -> (sb s, sk s) = src (onward f) ->
  blk_at (cp c) (sb s) = Some B -> inst_at B (sk s) = Some (IEff i o a r) ->
  waits_at id f = Some r0 ->
  exists t B' i' a', calm (code_q c) (startc (code_q c) args w) t /\
  (sb t, sk t) = tgt (onward f) /\ sw t = sw s /\
  (forall x o, get x (assigns (onward f)) = Some o -> fire M (onward f) (se s) o = se t x) /\
  steps_pass M halt (se s) (steps (onward f)) [] (sw s) /\
  blk_at (cq c) (sb t) = Some B' /\ inst_at B' (sk t) = Some (IEff i' o a' r0) /\
  map (se t) a' = map (se s) a.
Proof.
  intros c S Fi Len Ta Cm At EB NB Wt.
  destruct (land_one c (onward f) args w s S Fi Len Ta Cm At)
    as [t [Ct [Att [Ew [Et [Fr Sp]]]]]].
  pose proof S as [Rl Ok]. pose proof Fi as [Tk [X [h [fa [Tr _]]]]].
  pose proof (chk_pair_ok L (ct c) H _ _ _ _ _ _ _ _ Ok) as Pr.
  pose proof (okp _ _ _ _ _ _ Pr) as Okp. pose proof (okq _ _ _ _ _ _ Pr) as Okq.
  pose proof (table_ok _ _ _ _ _ _ Pr) as Tok.
  pose proof (args_okq _ _ _ _ _ _ Pr args Len) as Lenq.
  unfold takes, accept_entry in Tk. apply andb_true_iff in Tk.
  destruct Tk as [Tk _]. apply andb_true_iff in Tk. destruct Tk as [Tk _].
  apply andb_true_iff in Tk. destruct Tk as [Pa _]. rewrite <- At in Pa. cbn [fst] in Pa.
  pose proof (calm_past L M (ct c) H halt (canch c) (cp c) (cq c) (ck c) X (cpast c) (cahead c)
    (cneed c) (carmed c) F Rl Ok Tr args w Len Ta s Cm Pa) as Cp. apply calm_reach in Cp.
  destruct (lockstep L M (ct c) (canch c) (cp c) (cq c) (ck c) F Rl Pr args w Len Ta s Cp)
    as [gp [gq [G Ng]]].
  destruct (gap_sync L M (ct c) (canch c) (cp c) (cq c) (ck c) F Rl Pr args w Len Ta _ _ G)
    as [ep [eq [an [Np [Nq Sy]]]]].
  assert (An: at_anchor (canch c) (cp c) s = true).
  { unfold at_anchor. rewrite EB. unfold is_anch. now rewrite NB. }
  assert (ep = s).
  { pose proof (nreach_on L M (ct c) (canch c) (stopped (ck c)) (cp c) _ _ _ Ng Np
      (proj1 (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy))) as Z.
    eapply nreach_anchor; eauto. }
  subst ep.
  destruct Sy as [Rp Rq Pos Lt_a In_a Eww Ett Ag Eqs Anc Id].
  unfold waits_at in Wt. fold c in Wt. rewrite <- At in Wt. cbn [fst snd] in Wt. rewrite Id in Wt.
  destruct (tgt (onward f)) as [b k] eqn:Tg. destruct (blk_at (cq c) b) as [B'|] eqn:EB';
    [|discriminate].
  destruct (inst_at B' k) as [[|i' o' a' r']|] eqn:NB'; try discriminate.
  destruct (posb (snd (pos (ck c) an)) (b, k) && negb (stopped (ck c) an)) eqn:Z; [|discriminate].
  inversion Wt; subst r'; clear Wt. apply andb_true_iff in Z. destruct Z as [Zp Zs].
  apply posb_ok in Zp. apply negb_true_iff in Zs. rewrite Pos in Zp. simpl in Zp.
  inversion Att; subst b k. inversion Zp as [[Zb Zk]].
  assert (eq = t).
  { assert (Str: str eq = str t) by congruence.
    pose proof (reach_run L M (ct c) (canch c) (stopped (ck c)) (cq c) _ _ Rq) as Re.
    pose proof (calm_reach _ _ _ _ _ _ _ _ _ Ct) as Rt.
    destruct (either L M (ct c) (canch c) (cq c) _ _ _ Rt Re) as [Z|Z].
    - exact (eff_grows (code_q c) t eq B' i' o' a' r0 EB' NB' Z Str).
    - symmetry. rewrite <- Zb in EB'. rewrite <- Zk in NB'.
      exact (eff_grows (code_q c) eq t B' i' o' a' r0 EB' NB' Z (eq_sym Str)). }
  subst eq. pose proof (okanch _ _ _ _ _ _ Pr _ Lt_a In_a Zs) as CA. unfold chk_anchor in CA.
  rewrite Pos in CA. cbn [fst snd] in CA. rewrite EB, EB', NB, NB' in CA.
  apply andb_true_iff in CA. destruct CA as [_ CA]. apply andb_true_iff in CA.
  destruct CA as [CA _]. apply andb_true_iff in CA. destruct CA as [CA Ops].
  apply andb_true_iff in CA. destruct CA as [Eo _]. apply (op_eqb_ok _ _ F) in Eo. subst o'.
  pose proof (invp L M (ct c) (canch c) (cp c) (cq c) (ck c) F Rl Pr args w Len Ta s Rp) as Ip.
  pose proof (invq L M (ct c) (canch c) (cp c) (cq c) (ck c) F Rl Pr args w Len Ta t Rq) as Iq.
  exists t, B', i', a'. repeat (split; auto).
  destruct (block_ok _ _ _ _ Okp _ _ (inv_live _ _ _ _ _ Ip) EB) as [_ [_ [BIp _]]].
  destruct (block_ok _ _ _ _ Okq _ _ (inv_live _ _ _ _ _ Iq) EB') as [_ [_ [BIq _]]].
  pose proof (BIp _ _ NB) as Xp. pose proof (BIq _ _ NB') as Xq. simpl in Xp, Xq.
  symmetry. eapply (same_ops_ok L M (ct c) (canch c) (cp c) (cq c) (ck c) Pr); eauto.
  - intros y Hy. apply (inv_right _ _ _ _ _ Ip). bools.
    match goal with Z : forallb (fun x => availb _ x _ _) a = true |- _ =>
      rewrite forallb_forall in Z; auto end.
  - intros y Hy. apply (inv_right _ _ _ _ _ Iq). bools.
    match goal with Z : forallb (fun x => availb _ x _ _) a' = true |- _ =>
      rewrite forallb_forall in Z; auto end.
Qed.
End Frames.
