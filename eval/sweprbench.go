package eval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A pullRequest is a line of SWE-PRBench's prs.jsonl, without the unused fields.
type pullRequest struct {
	TaskID      string `json:"task_id"`
	Repo        string `json:"repo"`
	Number      int    `json:"pr_number"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Language    string `json:"language"`
	Diff        string `json:"diff_patch"`
}

// An annotation holds the review comments on a pull request.
type annotation struct {
	Substantive []string `json:"substantive_comment_ids"`
	Comments    []struct {
		ID         string `json:"comment_id"`
		Body       string `json:"body"`
		File       string `json:"file"`
		Line       int    `json:"line"`
		Initiating bool   `json:"is_initiating_comment"`
	} `json:"comments"`
}

// ImportSWEPRBench writes the pull requests of SWE-PRBench's configuration A, which
// shows only the diff, as cases. from, or its directory dataset, holds prs.jsonl,
// annotations and contexts. limit bounds the cases, 0 is no limit. As in the
// benchmark's harness, the substantive comments are expected or, if none is marked
// so, those that began a thread.
func ImportSWEPRBench(from, out string, limit int) (Imported, error) {
	var done Imported
	root := datasetDir(from, "prs.jsonl")
	list, err := os.Open(filepath.Join(root, "prs.jsonl"))
	if err != nil {
		return done, fmt.Errorf("import SWE-PRBench: want prs.jsonl, annotations and contexts in %s: %w", from, err)
	}
	defer func() { _ = list.Close() }()
	prs := json.NewDecoder(list)
	for n := 1; !done.full(limit); n++ {
		var pr pullRequest
		if err := prs.Decode(&pr); err == io.EOF {
			break
		} else if err != nil {
			return done, fmt.Errorf("import SWE-PRBench: prs.jsonl:%d: %w", n, err)
		}
		if err := done.pullRequest(root, out, pr); err != nil {
			return done, err
		}
	}
	return done, done.finish()
}

func (i *Imported) pullRequest(root, out string, pr pullRequest) error {
	id := cmp.Or(pr.TaskID, fmt.Sprintf("%s__%d", filepath.Base(pr.Repo), pr.Number))
	if filepath.Base(id) != id {
		i.leaveOut("%s: its task_id is no file name", id)
		return nil
	}
	if _, err := os.Stat(filepath.Join(root, "contexts", "config_A", id+".json")); errors.Is(err, fs.ErrNotExist) {
		i.leaveOut("%s: has no context in configuration A", id)
		return nil
	}
	var a annotation
	text, err := os.ReadFile(filepath.Join(root, "annotations", id+"_human.json"))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		i.leaveOut("%s: its annotation cannot be read: %v", id, err)
		return nil
	}
	return i.write(out, benchmarkCase{
		name: nameOf(id), description: pr.Title + "\n\n" + pr.Description, diff: pr.Diff,
		yaml: caseYAML{Language: cmp.Or(pr.Language, "unknown"), Expected: a.expectations()},
	})
}

func (a annotation) expectations() []expectationYAML {
	var xs []expectationYAML
	for _, c := range a.Comments {
		counts := c.Initiating
		if len(a.Substantive) > 0 {
			counts = slices.Contains(a.Substantive, c.ID)
		}
		if counts && c.File != "" && strings.TrimSpace(c.Body) != "" {
			xs = append(xs, newExpectation(c.File, c.Line, c.Line, c.Body))
		}
	}
	return xs
}
