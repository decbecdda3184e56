package eval

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write writes files below a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type object = map[string]any

// sweBench writes own data in the layout of SWE-PRBench.
func sweBench(t *testing.T, under string) string {
	t.Helper()
	pr := func(id string, diff string) string {
		return encode(t, object{
			"task_id": id, "repo": "we/demo", "pr_number": 7, "title": "Call b", "description": "It was forgotten.",
			"language": "Go", "difficulty": "easy", "base_commit": "1234567", "head_commit": "89abcde", "diff_patch": diff,
		})
	}
	comment := func(id, file string, line any, body string, begins bool) object {
		return object{"comment_id": id, "body": body, "file": file, "line": line, "diff_hunk": "@@", "severity": nil, "is_initiating_comment": begins, "is_reply": !begins}
	}
	marked := object{"task_id": "demo__7", "substantive_comment_ids": []string{"c_1", "c_2", "c_4"}, "comments": []object{
		comment("c_1", "a.go", 11, "`planted` is never checked by validateInput.", true),
		comment("c_2", "a.go", nil, "The function grows without a test.", true),
		comment("c_3", "a.go", 11, "Nice!", true),
		comment("c_4", "z.go", 3, "Also change this one.", true),
	}}
	unmarked := object{"task_id": "demo__8", "comments": []object{
		comment("c_1", "a.go", 11, "Why not handle the error?", true), comment("c_2", "a.go", 11, "Done.", false),
	}}
	files := map[string]string{
		"prs.jsonl": strings.Join([]string{
			pr("demo__7", goodDiff), pr("demo__8", strings.TrimSuffix(goodDiff, "\n")), pr("no-context__1", goodDiff), pr("no-annotation__1", goodDiff), pr("bad-diff__1", "nothing"), pr("../outside", goodDiff),
		}, "\n"),
		"annotations/demo__7_human.json": encode(t, marked), "annotations/demo__8_human.json": encode(t, unmarked),
		"annotations/bad-diff__1_human.json": encode(t, unmarked), "annotations/no-context__1_human.json": encode(t, unmarked),
	}
	for _, id := range []string{"demo__7", "demo__8", "no-annotation__1", "bad-diff__1"} {
		files["contexts/config_A/"+id+".json"] = encode(t, object{"task_id": id, "config_name": "config_A_diff_only", "rendered": "the diff"})
	}
	placed := map[string]string{}
	for name, text := range files {
		placed[filepath.Join(under, name)] = text
	}
	return write(t, placed)
}

func TestImportOfSWEPRBench(t *testing.T) {
	t.Parallel()
	for _, under := range []string{"", "dataset"} {
		out := t.TempDir()
		done, err := ImportSWEPRBench(sweBench(t, under), out, 0)
		if err != nil || done.Cases != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		for _, part := range []string{"demo__7: ", "no-context__1: ", "no-annotation__1: ", "bad-diff__1: ", "../outside: "} {
			if !slices.ContainsFunc(done.LeftOut, func(why string) bool { return strings.HasPrefix(why, part) }) {
				t.Errorf("left out %q, without %q", done.LeftOut, part)
			}
		}
		cases, err := Read(os.DirFS(out))
		if err != nil || len(cases) != 2 {
			t.Fatalf("%d cases, %v", len(cases), err)
		}
		first, second := cases[0], cases[1]
		if first.Name != "demo__7" || first.Language != "Go" || first.Description != "Call b\n\nIt was forgotten.\n" || len(first.Expected) != 2 {
			t.Fatalf("%+v", first)
		}
		if x := first.Expected[0]; x.Start != 11 || !slices.Equal(x.About, []string{"planted", "validateInput"}) {
			t.Errorf("%+v", x)
		}
		if x := first.Expected[1]; x.Start != 0 || !slices.Equal(x.About, []string{"function"}) {
			t.Errorf("%+v", x)
		}
		if len(second.Expected) != 1 || second.Expected[0].Says != "Why not handle the error?" {
			t.Errorf("comments that began a thread: %+v", second.Expected)
		}
	}
}

func TestImportLimitAndErrors(t *testing.T) {
	t.Parallel()
	if done, err := ImportSWEPRBench(sweBench(t, ""), t.TempDir(), 1); err != nil || done.Cases != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := ImportSWEPRBench(t.TempDir(), t.TempDir(), 0); err == nil {
		t.Errorf("error %v", err)
	}
	if _, err := ImportSWEPRBench(write(t, map[string]string{"prs.jsonl": "{\n"}), t.TempDir(), 0); err == nil || !strings.Contains(err.Error(), "prs.jsonl:1") {
		t.Errorf("error %v", err)
	}
	if _, err := ImportAACRBench(t.Context(), t.TempDir(), t.TempDir(), t.TempDir(), 0); err == nil {
		t.Errorf("error %v", err)
	}
}

// repository creates a repository with two commits and returns them.
func repository(t *testing.T, dir string) (base, head string) {
	t.Helper()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.test", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	for i, text := range []string{"one\ntwo\nthree\n", "one\n2\n2b\nthree\n"} {
		if err := os.WriteFile(filepath.Join(dir, "list.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", "step")
		if i == 0 {
			base = git("rev-parse", "HEAD")
		}
	}
	return base, git("rev-parse", "HEAD")
}

func TestImportOfAACRBench(t *testing.T) {
	t.Parallel()
	clones := t.TempDir()
	base, head := repository(t, filepath.Join(clones, "we__demo"))
	sample := func(repo, base, head string, comments ...object) object {
		return object{
			"change_line_count": 3, "project_main_language": "C++", "source_commit": base, "target_commit": head, "category": "Bug Fix",
			"githubPrUrl": "https://github.com/" + repo + "/pull/12", "comments": comments,
		}
	}
	comment := func(side string, from, to int, note string) object {
		return object{
			"is_ai_comment": false, "note": note, "path": "list.txt", "side": side, "source_model": "",
			"from_line": from, "to_line": to, "category": "Code Defect", "context": "Diff Level",
		}
	}
	dir := write(t, map[string]string{
		"dataset/positive_samples.json": encode(t, []object{
			sample("we/demo", base, head, comment("right", 3, 2, "`2b` is no number."), comment("left", 2, 2, "The removed line was needed elsewhere."), comment("right", 90, 90, "Outside of the change.")),
			sample("we/demo", "HEAD~1", "--output=x", comment("right", 2, 2, "x")),
			sample("we/nowhere", base, head, comment("right", 2, 2, "x")),
			sample("we/demo", base, strings.Repeat("0", 40), comment("right", 2, 2, "x")),
		}),
		"dataset/negative_samples.json": encode(t, []object{sample("we/demo", base, head, comment("right", 2, 2, "Refuted: rename this."))}),
	})
	out := t.TempDir()
	done, err := ImportAACRBench(t.Context(), dir, clones, out, 0)
	if err != nil || done.Cases != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if len(done.LeftOut) != 4 {
		t.Errorf("left out %q: want one remark and three pull requests", done.LeftOut)
	}
	cases, err := Read(os.DirFS(out))
	if err != nil {
		t.Fatal(err)
	}
	c := cases[0]
	if c.Name != "we__demo_"+head[:7] || c.Language != "C++" || len(c.Expected) != 2 || len(c.Forbidden) != 1 {
		t.Fatalf("%+v", c)
	}
	if x := c.Expected[0]; x.Start != 2 || x.End != 3 || len(x.About) != 0 {
		t.Errorf("%+v", x)
	}
	if x := c.Expected[1]; x.Start != 0 {
		t.Errorf("a remark on the old side has line %d", x.Start)
	}
}
