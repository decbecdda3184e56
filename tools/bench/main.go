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
	unit    string // as printed
	against string // name of the rival
	flags   []string
}

// A figure is a rate that a benchmark reports.
type figure struct {
	benchmark string // without the word Benchmark
	metric    string
}

var comparisons = []comparison{
	{
		"pipeline", "e2e", figure{"Pipeline/reviews", "reviews/s"}, figure{"Pipeline/floor", "reviews/s"},
		"reviews/s", "three empty activities", []string{"-benchtime=150x"},
	},
	{
		"pipeline-100000-jobs", "e2e", figure{"Pipeline/among-100000", "reviews/s"}, figure{"Pipeline/reviews", "reviews/s"},
		"reviews/s", "empty tables", []string{"-benchtime=150x"},
	},
	{
		"slots-100000-waiting", "e2e", figure{"Slots/waiting=100000", "slots/s"}, figure{"Slots/waiting=10", "slots/s"},
		"slots/s", "10 waiting", []string{"-benchtime=300x"},
	},
	{
		"redaction-source", "redaction/bench", figure{"Redaction/source/criticizer", "MB/s"}, figure{"Redaction/source/gitleaks", "MB/s"},
		"MB/s", "gitleaks", []string{"-cpu=1"},
	},
	{
		"redaction-diff", "redaction/bench", figure{"Redaction/diff/criticizer", "MB/s"}, figure{"Redaction/diff/gitleaks", "MB/s"},
		"MB/s", "gitleaks", []string{"-cpu=1"},
	},
	{
		"rewrite-claim", "e2e/queuebench", figure{"Queue/rewrite-claim", "queue_jobs/s"}, figure{"Queue/rewrite-claim", "river_jobs/s"},
		"jobs/s", "River", []string{"-benchtime=2x"},
	},
	{
		"starter", "e2e", figure{"Starter/starter", "starts/s"}, figure{"Starter/temporal", "starts/s"},
		"starts/s", "temporal workflow start", []string{"-benchtime=40x"},
	},
	{
		"mail", "notify/mail/bench", figure{"Mail/criticizer", "mails/s"}, figure{"Mail/go-mail", "mails/s"},
		"mails/s", "bare go-mail", nil,
	},
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
	var made results
	var failed error
	runs := benchmarks{}
	for _, c := range comparisons {
		if !wanted(only, c.name) {
			continue
		}
		r, err := c.measure(runs)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("measure %s: %w", c.name, err))
			continue
		}
		made.Rows = append(made.Rows, r)
	}
	if wanted(only, "cost") {
		var err error
		if made.Costs, err = measureCosts(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("measure cost: %w", err))
		}
	}
	return errors.Join(failed, made.print(stdout), made.write(out))
}

func wanted(only, name string) bool {
	return only == "" || slices.Contains(strings.Split(only, ","), name)
}

// rounds is how often both are measured, alternating: other programs may use the
// machine.
const rounds = 3

// medians runs one benchmark of a package several times and returns the median of
// each figure that it reported.
func medians(name, dir, benchmark string, flags ...string) (map[figure]float64, error) {
	all := map[figure][]float64{}
	for round := range rounds {
		found, err := goTest(fmt.Sprintf("%s, %d of %d", name, round+1, rounds), dir, benchmark, flags...)
		if err != nil {
			return nil, err
		}
		for f, value := range found {
			all[f] = append(all[f], value)
		}
	}
	found := map[figure]float64{}
	for f, values := range all {
		slices.Sort(values)
		found[f] = values[len(values)/2]
	}
	return found, nil
}

// goTest runs one benchmark of a package and returns what it reported.
func goTest(name, dir, benchmark string, flags ...string) (map[figure]float64, error) {
	fmt.Fprintf(os.Stderr, "==> measuring %s\n", name)
	args := append([]string{"test", "-run=^$", "-bench=^Benchmark" + benchmark + "$", "-timeout=30m"}, flags...)
	cmd := exec.Command("go", append(args, ".")...) //nolint:gosec // the arguments come from this file
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test in %s: %w\n%s", dir, err, output)
	}
	return figures(bytes.NewReader(output)), nil
}

// benchmarks are the figures of benchmarks by package and name. Several rows may use
// one benchmark.
type benchmarks map[[2]string]map[figure]float64

// measure runs both benchmarks, unless an earlier row has.
func (c comparison) measure(runs benchmarks) (row, error) {
	top, _, _ := strings.Cut(c.ours.benchmark, "/")
	found, ran := runs[[2]string{c.dir, top}]
	if !ran {
		var err error
		if found, err = medians(c.name, c.dir, top, c.flags...); err != nil {
			return row{}, err
		}
		runs[[2]string{c.dir, top}] = found
	}
	ours, rival := found[c.ours], found[c.rival]
	if ours == 0 || rival == 0 {
		return row{}, fmt.Errorf("go test in %s did not report %v and %v", c.dir, c.ours, c.rival)
	}
	return row{Name: c.name, Figure: ours, Unit: c.unit, Rival: c.against, RivalFigure: rival, Ratio: ours / rival}, nil
}

// A cost is what the review of a change of Files files takes.
type cost struct {
	Files       int     `json:"files"`
	Seconds     float64 `json:"seconds"`
	PeakMB      float64 `json:"peak_mb"`
	P4Processes float64 `json:"p4_processes"`
	ModelCalls  float64 `json:"model_calls"`
}

func measureCosts() ([]cost, error) {
	found, err := goTest("cost", "e2e", "Cost", "-benchtime=3x")
	if err != nil {
		return nil, err
	}
	var costs []cost
	for _, files := range []int{1, 10, 100, 1_000, 10_000} {
		of := func(metric string) float64 { return found[figure{fmt.Sprintf("Cost/files=%d", files), metric}] }
		costs = append(costs, cost{files, of("s/review"), of("peak-MB"), of("p4-processes/review"), of("model-calls/review")})
	}
	return costs, nil
}

// figures reads the output of go test.
func figures(printed io.Reader) map[figure]float64 {
	found := map[figure]float64{}
	for reader := benchfmt.NewReader(printed, "go test"); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		for _, v := range result.Values {
			unit, value := cmp.Or(v.OrigUnit, v.Unit), cmp.Or(v.OrigValue, v.Value)
			found[figure{nameOf(result.Name), unit}] = value
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
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return os.WriteFile(name, append(body, '\n'), 0o600)
}
