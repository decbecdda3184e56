package main

import (
	"math"
	"slices"
	"strings"
)

// A command is one that only reads.
type command struct {
	run   func(*session, flags, []string) error
	usage *message
	flags string // see parseFlags
	// least and most bound the number of arguments.
	least, most int
	// protected commands need a ticket, depotless ones no depot.
	protected, depotless bool
}

const many = math.MaxInt

var commands = map[string]command{
	"change":      {run: (*session).changeForm, usage: useChangeo, flags: "o s f O I i d t: U: u", most: 1, protected: true},
	"changelist":  {run: (*session).changeForm, usage: useChangeo, flags: "o s f O I i d t: U: u", most: 1, protected: true},
	"changes":     {run: (*session).changes, usage: useChanges, flags: changesFlags, most: many, protected: true},
	"changelists": {run: (*session).changes, usage: useChanges, flags: changesFlags, most: many, protected: true},
	"counter":     {run: (*session).counter, usage: useCounter, flags: "f d i m v --from: --to:", least: 1, most: many, protected: true},
	"describe":    {run: (*session).describe, usage: useDescribe, flags: "d: a m# s S f O I", least: 1, most: many, protected: true},
	"diff2":       {run: (*session).diff2, usage: useDiff2, flags: "d: O: q t u", least: 2, most: 2, protected: true},
	"filelog":     {run: (*session).filelog, usage: useFilelog, flags: "c# h i l L t m# p s 1", least: 1, most: many, protected: true},
	"files":       {run: (*session).files, usage: useFiles, flags: "a A e i m# U --streamviews", least: 1, most: many, protected: true},
	"fstat":       {run: (*session).fstat, usage: useFstat, flags: "F: T: m# r c# e# O: R: S: A: U --streamviews", least: 1, most: many, protected: true},
	"info":        {run: (*session).info, usage: useInfo, flags: "s", depotless: true},
	"login":       {run: (*session).login, usage: useLogin, flags: "s p a h: r:", most: 1, protected: true, depotless: true},
	"opened":      {run: (*session).opened, usage: useOpened, flags: "a c: C: u: m# s x g", most: many, protected: true},
	"print":       {run: (*session).print, usage: usePrint, flags: "a A k K o: q m# U --offset# --size# Q: B: L:", least: 1, most: many, protected: true},
	"review":      {run: (*session).review, usage: useReview, flags: "c# t:", protected: true},
	"reviews":     {run: (*session).reviews, usage: useReviews, flags: "c# C:", most: many, protected: true},
	"user":        {run: (*session).userForm, usage: useUser, flags: "f F d i o", most: 1, protected: true},
	"users":       {run: (*session).users, usage: useUsers, flags: "l a r c m#", most: many, protected: true},
	"where":       {run: (*session).where, usage: useWhere, flags: "", most: many, protected: true, depotless: true},
}

const changesFlags = "i t l L f r c: e# m# s: u: --stream --nostream"

// writers are the commands that change something. The stand-in's user may not.
var writers = []string{
	"add", "admin", "archive", "attribute", "branch", "client", "copy", "delete", "depot", "edit", "group", "integrate",
	"job", "key", "label", "labelsync", "lock", "merge", "move", "obliterate", "passwd", "populate", "protect", "reconcile",
	"rename", "reopen", "resolve", "revert", "shelve", "stream", "submit", "sync", "tag", "triggers", "typemap", "unlock",
	"unshelve", "workspace",
}

// hasLetter reports whether any value of an option of letters, as -Olf, has one.
func hasLetter(values []string, letter byte) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.IndexByte(v, letter) >= 0 })
}

// onlyFields applies fstat -T.
func onlyFields(f flags, record []field) []field {
	if !f.has("T") {
		return record
	}
	names := strings.FieldsFunc(f.value("T"), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.DeleteFunc(record, func(one field) bool { return !slices.Contains(names, one.key) })
}

const versionText = `Perforce - The Fast Software Configuration Management System.
Copyright 1995-2024 Perforce Software.  All rights reserved.
Rev. P4/LINUX26X86_64/2023.2/2535420 (2024/01/05).
`

const usageText = `Usage:

    p4 [ options ] command [ arg ... ]

    Options:
	-b batchsize, -c client, -C charset, -d dir, -e, -E VAR=value, -F format,
	-G, -h, -H host, -I, -L language, -Mj, -p port, -P password, -q,
	-Q charset, -r retries, -s, -u user, -v level, -V, -x file, -ztag
`
