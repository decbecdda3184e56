package eval

import (
	"bufio"
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

// A pullRequest is a line of SWE-PRBench's prs.jsonl, as far as it is used.
type pullRequest struct {
	TaskID      string `json:"task_id"`
	Repo        string `json:"repo"`
	Number      int    `json:"pr_number"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Language    string `json:"language"`
	Diff        string `json:"diff_patch"`
}

// An annotation is what people said of a pull request.
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

// ImportSWEPRBench writes the pull requests of SWE-PRBench as cases: those of
// its configuration A, which shows the diff alone. from holds prs.jsonl,
// annotations and contexts, or a directory dataset that does. limit bounds the
// cases, 0 is no limit. As in the benchmark's own harness the truth are the
// substantive comments, or those that began a thread if none is marked so.
func ImportSWEPRBench(from, out string, limit int) (Imported, error) {
	var done Imported
	root := from
	if _, err := os.Stat(filepath.Join(from, "dataset", "prs.jsonl")); err == nil {
		root = filepath.Join(from, "dataset")
	}
	list, err := os.Open(filepath.Join(root, "prs.jsonl"))
	if err != nil {
		return done, fmt.Errorf("import SWE-PRBench: want prs.jsonl, annotations and contexts in %s: %w", from, err)
	}
	defer func() { _ = list.Close() }()
	lines := bufio.NewReader(list)
	for n := 1; !done.full(limit); n++ {
		line, readErr := lines.ReadBytes('\n')
		if readErr != nil && readErr != io.EOF {
			return done, fmt.Errorf("import SWE-PRBench: %w", readErr)
		}
		if len(strings.TrimSpace(string(line))) > 0 {
			var pr pullRequest
			if err := json.Unmarshal(line, &pr); err != nil {
				return done, fmt.Errorf("import SWE-PRBench: prs.jsonl:%d: %w", n, err)
			}
			if err := done.pullRequest(root, out, pr); err != nil {
				return done, err
			}
		}
		if readErr == io.EOF {
			break
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
	return i.write(out, foreign{
		name: nameOf(id), description: pr.Title + "\n\n" + pr.Description, diff: pr.Diff,
		verdict: verdict{Language: cmp.Or(pr.Language, "unknown"), Expected: a.truth()},
	})
}

// truth are the comments that count.
func (a annotation) truth() []expected {
	var xs []expected
	for _, c := range a.Comments {
		counts := c.Initiating
		if len(a.Substantive) > 0 {
			counts = slices.Contains(a.Substantive, c.ID)
		}
		if counts && c.File != "" && strings.TrimSpace(c.Body) != "" {
			xs = append(xs, said(c.File, c.Line, c.Line, c.Body))
		}
	}
	return xs
}
