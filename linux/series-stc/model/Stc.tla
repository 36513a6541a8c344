---------------------------------- MODULE Stc --------------------------------
(* SPDX-License-Identifier: GPL-2.0 *)
(* The software translation cache against whatever frees and moves page tables. README.md says what is modelled and what not.
   Here: all steps together, and what must hold. *)
EXTENDS Writers
-----------------------------------------------------------------------------

Next ==
    \/ \E f \in Faults : Touch(f) \/ Fault(f)
    \/ Begins \/ Writer
    \/ Collapse

Safety == Init /\ [][Next]_vars

(* Progress: faults and writers that have begun go on. *)
Spec == Safety /\ WF_vars(Writer) /\ \A f \in Faults : WF_vars(Fault(f))

-----------------------------------------------------------------------------
(* What must hold. *)

\* Levels whose table a fault uses, locks held. PTE tables come and go; they are looked at when an entry is stored.
Uses(f) == IF th[f].v # None /\ th[f].st \in {"walk", "install", "store"} THEN {k \in 0 .. Pmd : th[f].tab[k] # None} ELSE {}

\* Nobody uses a freed table, and no freed table has entries.
NoDeadTable ==
    /\ \A f \in Faults : \A k \in Uses(f) : Linked(th[f].tab[k])
    /\ \A x \in DOMAIN link : Linked(Holder(x))

\* The table that is used for an address is the one that the page tables lead to.
RightTable == \A f \in Faults : \A k \in Uses(f) : th[f].tab[k] = Table(th[f].m, th[f].a, k)

\* A line's table is one of its tag's addresses (but for tables that have moved).
Power(k) == CASE k = 1 -> 10 [] k = 2 -> 100 [] OTHER -> 1000
NoTornLine ==
    \A c \in Caches, x \in Places :
        line[c][x] # NoLine => (line[c][x].table \div 10) % Power(x[1]) = line[c][x].tag \div (IF EntryLines THEN 10 ELSE 1)

\* Every page that a fault counted is where a VMA covers it.
RssExact == \A m \in Mms : rss[m] = Cardinality({a \in Addresses : Covered(m, a) /\ Leaf(m, a) \in DOMAIN link})

\* Every fault comes to its end.
EveryFaultEnds == \A f \in Faults : th[f].st # "idle" ~> th[f].st = "idle"
==============================================================================
