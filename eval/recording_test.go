package eval

import (
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/p4/local"
	"github.com/criticizer/criticizer/review"
)

// A replay has the figures of the record, without a model, and notices other questions.
func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	cases, err := BuiltIn()
	testkit.NoError(t, err)
	large := Case{Name: "large", Language: "Go", Clean: true, description: "One of two parts has no usable answer.", edits: local.Edits(nil, map[string]string{
		"a.go": strings.Repeat("call(one, two)\n", 2_500), "b.go": strings.Repeat("other(one, two)\n", 2_500),
	})}
	cases = append(cases[:6:6], cases[len(cases)-1], large)
	pipeline := newPipeline(t)
	r, model := askModel(t, pipeline, llmsim.Fault{Kind: llmsim.NotJSON, Match: "other(one", Times: 4},
		llmsim.Fault{Kind: llmsim.NotJSON, Times: 2}) // the first case has no usable answer
	recording := NewRecording("0123456789abcdef")
	recorded, err := newEvaluator(t, pipeline, r, Config{Runs: 2, Recording: recording}).Run(t.Context(), cases)
	testkit.NoError(t, err)
	report := NewReport(recorded, nil, review.Prices{})
	if calls := model.Stats().Calls; calls < 2*len(cases) || report.ParseFailures != 1 || report.Tokens == 0 {
		t.Fatalf("%d calls, %+v", calls, report.Scores)
	}
	dir := filepath.Join(t.TempDir(), "new")
	testkit.NoError(t, recording.Write(dir, report))

	calls := model.Stats().Calls
	again, err := ReadRecording(dir)
	testkit.NoError(t, err)
	replayed, err := newEvaluator(t, pipeline, r, Config{Runs: 2, Recording: again}).Run(t.Context(), cases)
	testkit.NoError(t, err)
	if model.Stats().Calls != calls {
		t.Errorf("%d calls of a replay", model.Stats().Calls-calls)
	}
	if got := NewReport(replayed, nil, review.Prices{}); !reflect.DeepEqual(got.Scores, report.Scores) || !reflect.DeepEqual(got.Results, report.Results) {
		t.Errorf("replayed\n%+v\nrecorded\n%+v", got.Results, report.Results)
	}
	if read, err := ReadReport(dir); err != nil || !reflect.DeepEqual(read.Scores, report.Scores) || len(read.Results) != len(recorded) {
		t.Errorf("%+v, %v", read.Scores, err)
	}

	changed := cases[1]
	changed.description += " Another question."
	for name, tt := range map[string]struct {
		cases []Case
		says  string
	}{
		"a changed question": {[]Case{cases[0], changed}, "has no answer to a question"},
		"a case not in it":   {[]Case{{Name: "new"}}, "does not have this review"},
	} {
		again, err := ReadRecording(dir)
		testkit.NoError(t, err)
		if _, err := newEvaluator(t, pipeline, r, Config{Recording: again}).Run(t.Context(), tt.cases); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if model.Stats().Calls != calls {
		t.Errorf("%d calls of failed replays", model.Stats().Calls-calls)
	}
}

var update = flag.Bool("update", false, "record testdata/recording again")

// The recording in testdata is of a stand-in's answers to some of the built-in cases. What
// changes a question, such as a prompt, a rule or what is masked, needs -update, whose
// report then shows what became of the findings.
func TestRecordingInTestdata(t *testing.T) {
	t.Parallel()
	const dir = "testdata/recording"
	cases, err := BuiltIn()
	testkit.NoError(t, err)
	cases = slices.DeleteFunc(cases, func(c Case) bool { return !strings.HasPrefix(c.Name, "go-") && !strings.HasPrefix(c.Name, "hostile-s") })
	pipeline := newPipeline(t)
	evaluate := func(recording *Recording) Report {
		cfg := config.Default[llm.Config]()
		cfg.BaseURL, cfg.Model = "http://127.0.0.1:39417/v1", "stand-in" // both are part of the questions
		r, err := llm.New(slog.New(slog.DiscardHandler), pipeline, cfg)
		testkit.NoError(t, err)
		results, err := newEvaluator(t, pipeline, r, Config{Tolerance: 1, Recording: recording}).Run(t.Context(), cases)
		testkit.NoError(t, err)
		return NewReport(results, nil, review.Prices{})
	}
	if *update {
		listener, err := net.Listen("tcp", "127.0.0.1:39417")
		testkit.NoError(t, err)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: llmsim.New(llmsim.Config{}), ReadHeaderTimeout: time.Minute}}
		server.Start()
		defer server.Close()
		recording := NewRecording("0123456789abcdef")
		testkit.NoError(t, recording.Write(dir, evaluate(recording)))
	}
	recording, err := ReadRecording(dir)
	testkit.NoError(t, err)
	want, err := ReadReport(dir)
	testkit.NoError(t, err)
	if got := evaluate(recording); !reflect.DeepEqual(got.Scores, want.Scores) || want.Found == 0 || len(want.Results) != len(cases) {
		t.Errorf("replayed %+v\nrecorded %+v", got.Scores, want.Scores)
	}
}

// reports returns two reports about n cases with three defects each. A model finds a defect
// with the probability of its recall, and makes a false finding in every third case.
func reports(draw *rand.Rand, n int, recall [2]float64) (out [2]Report) {
	for i := range n {
		luck := [3]float64{draw.Float64(), draw.Float64(), draw.Float64()}
		for m := range out {
			r := Result{Case: fmt.Sprint(i), Run: 1, Expected: len(luck)}
			for j, l := range luck {
				// Both models find the same easy defects, as models of one kind do, but a third by chance.
				if j == 0 {
					l = draw.Float64()
				}
				if l < recall[m] {
					r.Found++
					r.True++
				} else {
					r.Missed = append(r.Missed, fmt.Sprint("defect ", j))
				}
			}
			if i%3 == 0 {
				r.False = []string{"x"}
			}
			out[m].Results = append(out[m].Results, r)
		}
	}
	return out
}

// A model that is 5 points of F1 better is told apart at the promised number of cases, and
// not far below it. Two equal ones are not.
func TestCompareTellsFivePointsApart(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(3, 4))
	better := [2]float64{0.55, 0.62} // F1 .64 and .69
	compare := func(n int, recall [2]float64) Comparison {
		pair := reports(draw, n, recall)
		c, err := Compare(pair[0], pair[1])
		testkit.NoError(t, err)
		return c
	}
	pilot := compare(300, better)
	if pilot.F1 < 0.01 || pilot.F1 > 0.09 || pilot.CasesNeeded < 50 || pilot.CasesNeeded > 1_000 {
		t.Fatalf("pilot %+v", pilot)
	}
	const trials = 40
	share := func(n int, recall [2]float64, want Verdict) (told int) {
		for range trials {
			if compare(n, recall).Verdict == want {
				told++
			}
		}
		return told
	}
	if told := share(pilot.CasesNeeded, better, Better); told < trials*6/10 {
		t.Errorf("told apart in %d of %d trials with %d cases", told, trials, pilot.CasesNeeded)
	}
	if told := share(max(pilot.CasesNeeded/6, 2), better, Better); told > trials/2 {
		t.Errorf("told apart in %d of %d trials with a sixth of the cases", told, trials)
	}
	if told := trials - share(pilot.CasesNeeded, [2]float64{0.6, 0.6}, CannotBeTold); told > trials/6 {
		t.Errorf("equal models are told apart in %d of %d trials", told, trials)
	}
	if told := share(pilot.CasesNeeded, [2]float64{0.62, 0.45}, Worse); told < trials*9/10 {
		t.Errorf("a much worse one is told in %d of %d trials", told, trials)
	}
}

func TestMcNemar(t *testing.T) {
	t.Parallel()
	for split, want := range map[[2]int]float64{ // of the binomial table
		{0, 0}: 1, {5, 5}: 1, {0, 5}: 0.0625, {2, 10}: 0.0386, {1, 9}: 0.0215,
	} {
		if got := mcNemar(split[0], split[1]); math.Abs(got-want) > 0.0001 {
			t.Errorf("%v: %.4f, want %.4f", split, got, want)
		}
	}
}

func TestCompareRefusesOtherCases(t *testing.T) {
	t.Parallel()
	pair := reports(rand.New(rand.NewPCG(3, 4)), 3, [2]float64{0.5, 0.5})
	other := pair[1]
	other.Results = slices.Clone(other.Results)
	other.Results[1].Case = "other"
	fewer := pair[1]
	fewer.Results = fewer.Results[1:]
	for name, second := range map[string]Report{"another case": other, "fewer": fewer} {
		if c, err := Compare(pair[0], second); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// The case that an import writes is read with the commits of the pull request.
func TestImportAACR(t *testing.T) {
	t.Parallel()
	dir, repositories := t.TempDir(), t.TempDir()
	from, to := commits(t, filepath.Join(repositories, "own", "er"))
	file := filepath.Join(dir, "positive_samples.json")
	write := func(text string) {
		testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	// Shape and odd values are those of the published file: a range the wrong way round, and
	// a comment on the old text.
	write(fmt.Sprintf(`[{"change_line_count": 2, "project_main_language": "Go", "source_commit": %q, "target_commit": %q,
		"githubPrUrl": "https://github.com/own/er/pull/17", "category": "Bug Fix", "comments": [
		{"is_ai_comment": false, "note": "It calls b.\n", "path": "a.go", "side": "right", "source_model": "", "from_line": 5, "to_line": 4, "category": "Code Defect", "context": "Diff Level"},
		{"is_ai_comment": true, "note": "Why was it removed?", "path": "a.go", "side": "left", "from_line": 2, "to_line": 2}]}]`, from, to))
	cases := filepath.Join(dir, "cases")
	if n, err := ImportAACR(file, cases); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	read, err := Read(t.Context(), os.DirFS(cases), repositories)
	testkit.NoError(t, err)
	c := read[0]
	if len(read) != 1 || c.Name != "own-er-17" || c.Language != "Go" || !strings.Contains(c.description, "Call b") || len(c.edits) != 1 || c.edits[0].After != goodAfter {
		t.Errorf("%+v", c)
	}
	if x := c.Expected; len(x) != 2 || x[0].Start != 4 || x[0].End != 5 || x[1].Start != 0 || x[0].Says != "It calls b." {
		t.Errorf("%+v", x)
	}
	for _, text := range []string{"{}", "[{}]", `[{"githubPrUrl": "https://github.com/own/er/pull/17"}]`} {
		write(text)
		if _, err := ImportAACR(file, cases); err == nil {
			t.Errorf("%s was imported", text)
		}
	}
}

// commits makes a repository with two commits of a.go.
func commits(t *testing.T, dir string) (from, to string) {
	t.Helper()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.test"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	testkit.NoError(t, os.MkdirAll(dir, 0o700))
	git("init", "-q")
	for _, text := range []string{goodBefore, goodAfter} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(text), 0o600))
		git("add", "a.go")
		git("commit", "-qm", "Call b")
	}
	return git("rev-parse", "HEAD~1"), git("rev-parse", "HEAD")
}
