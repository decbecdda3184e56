// Command bench runs the benchmarks that have a competitor or a lower bound, and
// measures what a review costs by its size. It prints both as tables and writes them
// as JSON. `make bench` runs it in the root of the tree. A row's ratio is our figure
// divided by the other one: 2 is twice as good.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
)

// A comparison is of two figures of the same runs of go test.
type comparison struct {
	name    string
	dir     string // a package
	ours    figure
	rival   figure
	unit    string   // as printed
	against string   // name of the rival
	flags   []string // of the first row that uses the benchmark
}

// A figure is a rate that a benchmark reports.
type figure struct {
	benchmark string // without the word Benchmark
	metric    string
}

var comparisons = []comparison{
	{"pipeline", "e2e", figure{"Pipeline/reviews", "reviews/s"}, figure{"Pipeline/floor", "reviews/s"},
		"reviews/s", "three empty activities", []string{"-benchtime=90x"}},
	{"pipeline-1000000-jobs", "e2e", figure{"Pipeline/among-1000000", "reviews/s"}, figure{"Pipeline/reviews", "reviews/s"},
		"reviews/s", "empty tables", nil},
	{"first-mail-p50", "e2e", figure{"FirstMail/criticizer", "p50-ms"}, figure{"FirstMail/floor", "p50-ms"},
		"ms", "starter, three empty activities", []string{"-benchtime=15x"}},
	{"first-mail-p95", "e2e", figure{"FirstMail/criticizer", "p95-ms"}, figure{"FirstMail/floor", "p95-ms"},
		"ms", "starter, three empty activities", nil},
	{"redaction-source", "tools/bench/redaction", figure{"Redaction/source/criticizer", "MB/cpu-s"}, figure{"Redaction/source/gitleaks", "MB/cpu-s"},
		"MB/cpu-s", "gitleaks", []string{"-cpu=1", "-benchtime=1x"}},
	{"redaction-diff", "tools/bench/redaction", figure{"Redaction/diff/criticizer", "MB/cpu-s"}, figure{"Redaction/diff/gitleaks", "MB/cpu-s"},
		"MB/cpu-s", "gitleaks", nil},
	{"rewrite-claim", "tools/bench/queue", figure{"Queue/rewrite-claim", "queue_jobs/s"}, figure{"Queue/rewrite-claim", "river_jobs/s"},
		"jobs/s", "River", []string{"-benchtime=3x", "-count=3"}},
	{"starter", "e2e", figure{"Starter/starter", "starts/s"}, figure{"Starter/temporal", "starts/s"},
		"starts/s", "temporal workflow start", []string{"-benchtime=15x"}},
}

// A row is the result of a comparison.
type row struct {
	Name   string  `json:"name"`
	Figure float64 `json:"figure"`
	Unit   string  `json:"unit"`
	Rival  string  `json:"rival"`
	// RivalFigure has the same unit.
	RivalFigure float64 `json:"rival_figure"`
	Ratio       float64 `json:"ratio"` // higher is better for us
}

func main() {
	only := flag.String("only", "", "names of the rows, separated by commas (default all)")
	out := flag.String("o", "build/bench.json", "file for the JSON")
	flag.Parse()
	if err := run(*only, *out, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "bench: error: %v\n", err)
		os.Exit(1)
	}
}

func run(only, out string, stdout io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o750); err != nil {
		return err
	}
	log, err := os.Create(strings.TrimSuffix(out, ".json") + ".txt") // what benchstat reads
	if err != nil {
		return err
	}
	b := bench{log, map[[2]string]figures{}}
	var made results
	var failed error
	for _, c := range comparisons {
		if !wanted(only, c.name) {
			continue
		}
		r, err := b.measure(c)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("measure %s: %w", c.name, err))
			continue
		}
		made.Rows = append(made.Rows, r)
	}
	if wanted(only, "cost") {
		if made.Costs, err = b.measureCosts(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("measure cost: %w", err))
		}
	}
	return errors.Join(failed, log.Close(), made.print(stdout), made.write(out))
}

func wanted(only, name string) bool {
	return only == "" || slices.Contains(strings.Split(only, ","), name)
}

// figures are what benchmarks reported, in each round.
type figures map[figure][]float64

// median of the rounds: other programs may use the machine.
func (f figures) median(of figure) float64 {
	values := slices.Sorted(slices.Values(f[of]))
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}

// A bench runs each benchmark once, although several rows may use one.
type bench struct {
	log io.Writer             // gets the output
	ran map[[2]string]figures // by package and benchmark
}

// number is what Go appends to the name of a benchmark that runs again.
var number = regexp.MustCompile(`#\d\d`)

// goTest runs one benchmark of a package, which compares in several rounds.
func (b bench) goTest(name, dir, benchmark string, flags ...string) (figures, error) {
	if found, ok := b.ran[[2]string{dir, benchmark}]; ok {
		return found, nil
	}
	fmt.Fprintf(os.Stderr, "==> measuring %s\n", name)
	args := append([]string{"test", "-run=^$", "-bench=^Benchmark" + strings.ReplaceAll(benchmark, "/", "$/^") + "$", "-timeout=30m"}, flags...)
	cmd := exec.Command("go", append(args, ".")...) //nolint:gosec // the arguments come from this file
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test in %s: %w\n%s", dir, err, output)
	}
	output = number.ReplaceAll(output, nil)
	found := parse(bytes.NewReader(output))
	b.ran[[2]string{dir, benchmark}] = found
	_, err = b.log.Write(output)
	return found, err
}

func (b bench) measure(c comparison) (row, error) {
	benchmark := c.ours.benchmark
	if benchmark != c.rival.benchmark {
		benchmark, _, _ = strings.Cut(benchmark, "/")
	}
	found, err := b.goTest(c.name, c.dir, benchmark, c.flags...)
	if err != nil {
		return row{}, err
	}
	ours, rival := found.median(c.ours), found.median(c.rival)
	if ours == 0 || rival == 0 {
		return row{}, fmt.Errorf("go test in %s did not report %v and %v", c.dir, c.ours, c.rival)
	}
	ratio := ours / rival
	if c.unit == "ms" {
		ratio = rival / ours
	}
	return row{Name: c.name, Figure: ours, Unit: c.unit, Rival: c.against, RivalFigure: rival, Ratio: ratio}, nil
}

// A cost is what the review of a change of Files files takes.
type cost struct {
	Files       int     `json:"files"`
	Seconds     float64 `json:"seconds"`
	PeakMB      float64 `json:"peak_mb"`
	P4Processes float64 `json:"p4_processes"`
	ModelCalls  float64 `json:"model_calls"`
}

func (b bench) measureCosts() ([]cost, error) {
	found, err := b.goTest("cost", "e2e", "Cost", "-benchtime=2x")
	if err != nil {
		return nil, err
	}
	var costs []cost
	for _, files := range []int{1, 10, 100, 1_000, 10_000} {
		of := func(metric string) float64 { return found.median(figure{fmt.Sprintf("Cost/files=%d", files), metric}) }
		costs = append(costs, cost{files, of("s/review"), of("peak-MB"), of("p4-processes/review"), of("model-calls/review")})
	}
	return costs, nil
}

// parse reads the output of go test.
func parse(printed io.Reader) figures {
	found := figures{}
	for reader := benchfmt.NewReader(printed, "go test"); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		for _, v := range result.Values {
			unit, value := cmp.Or(v.OrigUnit, v.Unit), cmp.Or(v.OrigValue, v.Value)
			of := figure{nameOf(result.Name), unit}
			found[of] = append(found[of], value)
		}
	}
	return found
}

// nameOf returns the name of a benchmark without the number of cores.
func nameOf(n benchfmt.Name) string {
	base, parts := n.Parts()
	name := string(base)
	for _, p := range parts {
		if !bytes.HasPrefix(p, []byte("-")) {
			name += string(p)
		}
	}
	return name
}

// results are all measurements.
type results struct {
	Rows  []row  `json:"rows"`
	Costs []cost `json:"costs,omitempty"`
}

func (r results) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tFIGURE\tUNIT\tRIVAL\tRIVAL'S\tRATIO")
	for _, r := range r.Rows {
		fmt.Fprintf(t, "%s\t%.1f\t%s\t%s\t%.1f\t%.2f\n", r.Name, r.Figure, r.Unit, r.Rival, r.RivalFigure, r.Ratio)
	}
	if len(r.Costs) > 0 {
		fmt.Fprintln(t, "\nFILES\tSECONDS\tPEAK MB\tP4 PROCESSES\tMODEL CALLS\t")
	}
	for _, c := range r.Costs {
		fmt.Fprintf(t, "%d\t%.2f\t%.0f\t%.0f\t%.0f\t\n", c.Files, c.Seconds, c.PeakMB, c.P4Processes, c.ModelCalls)
	}
	return t.Flush()
}

func (r results) write(name string) error {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(body, '\n'), 0o600)
}
