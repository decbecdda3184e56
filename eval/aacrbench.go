package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A sample is an entry of AACR-Bench's positive_samples.json, without the unused
// fields; negative_samples.json has the same form.
type sample struct {
	Language string `json:"project_main_language"`
	Base     string `json:"source_commit"`
	Head     string `json:"target_commit"`
	URL      string `json:"githubPrUrl"`
	Category string `json:"category"`
	Comments []struct {
		Note string `json:"note"`
		Path string `json:"path"`
		Side string `json:"side"` // right is the new content
		From int    `json:"from_line"`
		To   int    `json:"to_line"`
	} `json:"comments"`
}

// ImportAACRBench writes the pull requests of AACR-Bench as cases. from, or its
// directory dataset, holds positive_samples.json; clones holds clones of the
// repositories, named owner/name, owner__name or name, from which git computes the
// diffs. limit bounds the cases, 0 is no limit. The comments that the benchmark's
// experts refuted (negative_samples.json) are forbidden.
func ImportAACRBench(ctx context.Context, from, clones, out string, limit int) (Imported, error) {
	var done Imported
	root := datasetDir(from, "positive_samples.json")
	samples, err := readSamples(filepath.Join(root, "positive_samples.json"))
	if err != nil {
		return done, fmt.Errorf("import AACR-Bench: %w", err)
	}
	refuted := map[string][]expectationYAML{}
	if negative, err := readSamples(filepath.Join(root, "negative_samples.json")); err == nil {
		for _, s := range negative {
			refuted[s.URL] = append(refuted[s.URL], s.expectations()...)
		}
	}
	for _, s := range samples {
		if done.full(limit) {
			break
		}
		if err := done.sample(ctx, clones, out, s, refuted[s.URL]); err != nil {
			return done, err
		}
	}
	return done, done.finish()
}

func readSamples(name string) (samples []sample, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &samples); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return samples, nil
}

var commit = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)

func (i *Imported) sample(ctx context.Context, clones, out string, s sample, refuted []expectationYAML) error {
	parts := pullRequestPath(s.URL)
	if parts == nil || !commit.MatchString(s.Base) || !commit.MatchString(s.Head) {
		i.leaveOut("%s: names no pull request with two commits", s.URL)
		return nil
	}
	name := nameOf(fmt.Sprintf("%s__%s@%.7s", parts[0], parts[1], s.Head))
	clone := cloneOf(clones, parts[0], parts[1])
	if clone == "" {
		i.leaveOut("%s: no clone of %s/%s in %s: run git clone https://github.com/%s/%s there", name, parts[0], parts[1], clones, parts[0], parts[1])
		return nil
	}
	diff, err := gitDiff(ctx, clone, s.Base, s.Head)
	if err != nil {
		i.leaveOut("%s: %v", name, err)
		return ctx.Err()
	}
	return i.write(out, benchmarkCase{
		name: name, description: "Pull request " + parts[3] + " of " + parts[0] + "/" + parts[1] + ". " + s.Category, diff: diff,
		yaml: caseYAML{Language: s.Language, Expected: s.expectations(), Forbidden: refuted},
	})
}

// pullRequestPath returns owner, name, "pull" and number, nil for another URL.
func pullRequestPath(s string) []string {
	u, err := url.Parse(s)
	if err != nil {
		return nil
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) != 4 || parts[2] != "pull" || strings.Contains(u.Path, "..") {
		return nil
	}
	return parts
}

func cloneOf(clones, owner, name string) string {
	for _, dir := range []string{filepath.Join(owner, name), owner + "__" + name, name} {
		for _, bare := range []string{"", ".git"} {
			path := filepath.Join(clones, dir+bare)
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				return path
			}
		}
	}
	return ""
}

// gitDiff returns the diff between the base and the last commit of a pull request.
func gitDiff(ctx context.Context, clone, base, head string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", "-C", clone, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", base, head) //nolint:gosec // two commits, checked to be hexadecimal, in a directory the caller named
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git diff of %.7s and %.7s: %w: %s", base, head, err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// expectations returns the comments as expectations. A comment on the old side,
// whose lines are not in the new content, is about the whole file.
func (s sample) expectations() []expectationYAML {
	var xs []expectationYAML
	for _, c := range s.Comments {
		if c.Path == "" || strings.TrimSpace(c.Note) == "" {
			continue
		}
		from, to := min(c.From, c.To), max(c.From, c.To)
		if strings.EqualFold(c.Side, "left") {
			from, to = 0, 0
		}
		xs = append(xs, newExpectation(c.Path, from, to, c.Note))
	}
	return xs
}
