package main

import (
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	env := smallEnv(t)
	all := records(t, env, "describe", "2", "3")
	content := "$Id$\none\n2\n"
	second := record{
		"code": "stat", "change": "2", "user": "vera", "client": "vera-ws", "status": "submitted", "changeType": "public",
		"path": "//depot/...", "desc": "Second line one.\n\nAnd three.\n", "oldChange": "-", "shelved": "-", "job0": "-",
		"depotFile0": "//depot/logo.png", "type0": "binary", "rev0": "2",
		"depotFile1": "//depot/src/a b.c", "fileSize1": fmt.Sprint(len(content)), "digest1": fmt.Sprintf("%X", md5.Sum([]byte(content))), "fromFile1": "-",
		"action2": "move/add", "fromFile2": "//depot/src/odd%40%23%25%2Aname.txt", "fromRev2": "1",
		"action3": "move/delete", "digest3": "-", "fileSize3": "-", "depotFile4": "-",
	}
	holds(t, all[0], second)
	holds(t, all[1], record{
		"oldChange": "2999", "job0": "job000001", "job1": "BUG-7", "job2": "-",
		"action0": "branch", "fromFile0": "//depot/src/a b.c", "fromRev0": "2",
	})
	second["fromFile2"], second["fromRev2"] = "-", "-"
	holds(t, records(t, env, "describe", "-s", "2")[0], second)
}

func TestPendingAndShelvedFiles(t *testing.T) {
	t.Parallel()
	env := smallEnv(t)
	holds(t, records(t, env, "describe", "7")[0], record{
		"status": "pending", "depotFile0": "//depot/src/a b.c", "rev0": "3", "digest0": "-", "shelved": "-", "depotFile1": "-",
	})
	holds(t, records(t, env, "describe", "-S", "7")[0], record{
		"shelved": "", "path": "-", "rev0": "3", "fileSize0": "9", "action1": "delete", "rev1": "2", "digest1": "-",
	})
	all := records(t, env, "print", "//depot/src/a b.c@=7")
	if all[0]["rev"] != "3" || all[1]["data"] != "one\nmore\n" {
		t.Errorf("a shelved file is %v", all)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	env := smallEnv(t)
	for want, args := range map[string][]string{
		"7 6 3 2 1": nil,
		"6 3 2 1":   {"-s", "submitted"},
		"6":         {"-s", "submitted", "-m", "1"},
		"7":         {"-s", "pending"},
		"3 2":       {"//depot/src/...@2,@3"},
		"6 3":       {"//depot/src/...@3,@6"},
		"2":         {"//depot/logo.png@2,@9"},
		"3 1":       {"//depot/rel/...@1,@9", "//depot/link"},
		"":          {"//depot/nosuch/..."},
	} {
		if got := column(records(t, env, append([]string{"changes"}, args...)...), "change"); got != want {
			t.Errorf("changes %q: %q, want %q", args, got, want)
		}
	}
	holds(t, records(t, env, "changes", "-m", "1")[0], record{"desc": "On its way.\n", "status": "pending"})
	const tagged = "... change 6\n... time 1714557960\n... user bruno\n... status submitted\n... path //depot/src/*\n... desc Gone.\n\n\n"
	if got := p4(env, "", "-ztag", "changes", "-s", "submitted", "-m", "1"); got.stdout != tagged {
		t.Errorf("tagged:\n%s", got.stdout)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	env := smallEnv(t)
	all := records(t, env, "files", "-m", "2", "//depot/...")
	if column(all, "depotFile") != "//depot/link //depot/logo.png" || column(all, "rev") != "1 2" {
		t.Errorf("%v", all)
	}
	if all := records(t, env, "files", "//depot/*"); len(all) == 0 || strings.Contains(all[0]["depotFile"], "/src/") {
		t.Errorf("//depot/* lists %v", all)
	}
	holds(t, records(t, env, "files", "//depot/src/new.txt")[0], record{"action": "delete", "type": "text", "change": "6", "rev": "2"})
	holds(t, records(t, env, "files", "//depot/src/new.txt@5")[0], record{"action": "move/add", "rev": "1"})
}

func TestPrint(t *testing.T) {
	t.Parallel()
	env := smallEnv(t)
	all := records(t, env, "print", "//depot/src/a b.c#1", "//depot/src/new.txt", "//depot/logo.png#1", "//depot/src/a b.c#9")
	if column(all, "code") != "stat text text stat stat binary binary error" || column(all[1:3], "data") != "$Id$\none\ntwo\n " {
		t.Errorf("%v", all)
	}
	holds(t, all[0], record{"fileSize": "13", "type": "text+k"})
	holds(t, all[3], record{"action": "delete", "fileSize": "-"})
	holds(t, all[5], record{"data": "\x00\x01\x02\x03"})
	holds(t, all[7], record{"data": "//depot/src/a b.c#9 - no such file(s).\n"})
	if got := p4(env, "", "-ztag", "print", "//depot/link"); !strings.HasSuffix(got.stdout, "... fileSize 10\n\nsrc/a b.c\n") {
		t.Errorf("tagged: %q", got.stdout)
	}
}

func TestLongContentComesInChunks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcde\n", 600)
	path := filepath.Join(t.TempDir(), "depot.txtar")
	testkit.NoError(t, os.WriteFile(path, []byte("-- change 1 --\nx\n-- add text //depot/long --\n"+long), 0o600))
	var sizes []int
	var whole strings.Builder
	for _, r := range records(t, []string{"P4SIM_DEPOT=" + path, "P4SIM_STATE=" + t.TempDir()}, "print", "//depot/long")[1:] {
		sizes = append(sizes, len(r["data"]))
		whole.WriteString(r["data"])
	}
	if whole.String() != long || fmt.Sprint(sizes) != "[4096 4096 1408 0]" {
		t.Errorf("chunks of %v bytes", sizes)
	}
}

func TestFilelog(t *testing.T) {
	t.Parallel()
	env := smallEnv(t)
	all := records(t, env, "filelog", "-m", "1", "//depot/src/a b.c#2", "//depot/rel/a.c#1", "//depot/src/new.txt#1")
	holds(t, all[0], record{"depotFile": "//depot/src/a b.c", "rev0": "2", "change0": "2", "rev1": "-", "how0,0": "-"})
	holds(t, all[1], record{"how0,0": "branch from", "file0,0": "//depot/src/a b.c", "srev0,0": "#none", "erev0,0": "#2"})
	holds(t, all[2], record{"how0,0": "moved from", "file0,0": "//depot/src/odd%40%23%25%2Aname.txt", "erev0,0": "#1"})
	holds(t, records(t, env, "filelog", "//depot/src/odd%40%23%25%2Aname.txt")[0], record{
		"action0": "move/delete", "how0,0": "-", "action1": "add", "rev2": "-",
	})
}

func TestUsersReviewsAndJobs(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, "P4SIM_MAIL_DOMAIN=mail.test")
	all := records(t, env, "users", "vera", "nobody")
	holds(t, all[0], record{"User": "vera", "Email": "vera@mail.test", "FullName": "Vera Cruz"})
	holds(t, all[1], record{"data": "nobody - no such user(s).\n", "severity": "2"})
	holds(t, records(t, env, "reviews", "-c", "2")[0], record{"user": "vera", "email": "vera@mail.test", "name": "Vera Cruz"})
	if all := records(t, env, "reviews", "-c", "7"); len(all) != 0 {
		t.Errorf("reviewers of a change without submitted files: %v", all)
	}
	all = records(t, env, "jobs", "-l", "-e", "Job=bug-7|Job=none")
	if len(all) != 1 {
		t.Fatalf("jobs: %v", all)
	}
	holds(t, all[0], record{"Job": "BUG-7", "Description": "It drips.\n"})
}
