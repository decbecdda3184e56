package main

import "testing"

// shelve makes what is in the directory the shelf of a pending change, on the
// commit of HEAD, which it leaves where it was.
func (r repo) shelve(ref, message string) {
	r.t.Helper()
	r.git("", "add", "-A")
	tree := r.git("", "write-tree")
	r.git("", "update-ref", ref, r.git(message+"\n", "commit-tree", tree, "-p", "HEAD"))
	r.git("", "reset", "-q", "--hard")
}

func TestRefsAreShelves(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.commit("First.")
	r.write("a.txt", "two\n")
	r.write("b.txt", "new\n")
	r.shelve("refs/shelves/900", "On its way.")
	r.write("a.txt", "three\n")
	r.shelve("refs/shelves/somebody", "Not a number.")
	env := r.env()
	all := records(t, p4(env, "", "-ztag", "-Mj", "describe", "-S", "900"))
	holds(t, all[0], map[string]any{
		"change": "900", "user": "ada", "status": "pending", "desc": "On its way.\n", "shelved": "",
		"depotFile0": "//depot/a.txt", "action0": "edit", "rev0": "1", "depotFile1": "//depot/b.txt", "action1": "add", "depotFile2": nil,
	})
	expect(t, p4(env, "", "print", "-q", "//depot/a.txt@=900"), "two\n")
	expect(t, p4(env, "", "print", "-q", "//depot/a.txt"), "one\n")
	if changes := records(t, p4(env, "", "-ztag", "-Mj", "changes", "-s", "shelved")); len(changes) != 1 || changes[0]["change"] != "900" {
		t.Errorf("shelved changes are %v", changes)
	}

	// Commits go on below the shelf, which may change, go and be overtaken.
	r.write("c.txt", "more\n")
	r.commit("Second.")
	r.write("a.txt", "four\n")
	r.shelve("refs/shelves/900", "On its way.")
	r.shelve("refs/shelves/2", "Overtaken.")
	if changes := records(t, p4(env, "", "-ztag", "-Mj", "changes", "-s", "submitted")); len(changes) != 2 || changes[0]["change"] != "2" || changes[0]["desc"] != "Second.\n" {
		t.Errorf("submitted changes are %v", changes)
	}
	expect(t, p4(env, "", "print", "-q", "//depot/a.txt@=900"), "four\n")
	r.git("", "update-ref", "-d", "refs/shelves/900")
	if changes := records(t, p4(env, "", "-ztag", "-Mj", "changes", "-s", "shelved")); len(changes) != 0 {
		t.Errorf("the shelf is gone, and yet there are %v", changes)
	}
	if n := len(records(t, p4(env, "", "-ztag", "-Mj", "changes"))); n != 2 {
		t.Errorf("%d changes, want the 2 commits", n)
	}
}
