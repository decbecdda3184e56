package eval

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Verdict is what a comparison can tell.
type Verdict string

// The verdicts about the second report.
const (
	Better       Verdict = "better"
	Worse        Verdict = "worse"
	CannotBeTold Verdict = "cannot be told"
)

// A Comparison compares two reports about the same cases.
type Comparison struct {
	Cases int `json:"cases"`
	// Verdict is about F1: it is better or worse if the interval of the difference does not
	// have 0.
	Verdict    Verdict  `json:"verdict"`
	F1         float64  `json:"f1_difference"`
	F1Interval Interval `json:"f1_interval"`
	// OnlyFirst and OnlySecond count the expectations that only one of both met. McNemar is the
	// probability of a split at least as uneven if both were equally good.
	OnlyFirst  int     `json:"only_first"`
	OnlySecond int     `json:"only_second"`
	McNemar    float64 `json:"mcnemar_p"`
	// CasesNeeded is about how many cases of this kind tell a difference of 5 points
	// of F1 apart, four times of five. It is 0 if the cases show no spread.
	CasesNeeded int `json:"cases_needed"`
}

const (
	resamples = 2_000
	// points is the difference of F1 that CasesNeeded is about.
	points = 0.05
	// power and certainty are the quantiles of the normal distribution at four fifths, and at 97.5 %.
	power, certainty = 0.842, 1.960
)

// An Interval is a 95 % confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A pair is the counts of one case in both reports, over all runs.
type pair [2]struct{ found, expected, right, wrong int }

// Compare compares two reports by a paired bootstrap over their cases, and by McNemar's test over
// their expectations.
func Compare(first, second Report) (c Comparison, err error) {
	pairs := map[string]*pair{}
	seconds := map[string]Result{}
	for _, r := range second.Results {
		seconds[reviewName(r.Case, r.Run)] = r
	}
	if len(first.Results) != len(second.Results) {
		return c, fmt.Errorf("one report has %d reviews and the other %d: compare reports of the same cases and runs", len(first.Results), len(second.Results))
	}
	var order []*pair
	for _, a := range first.Results {
		b, ok := seconds[reviewName(a.Case, a.Run)]
		if !ok || a.Expected != b.Expected {
			return c, fmt.Errorf("case %s, run %d: only one report has it, or it expects something else: compare reports of the same cases", a.Case, a.Run)
		}
		p := pairs[a.Case]
		if p == nil {
			p = &pair{}
			pairs[a.Case] = p
			order = append(order, p)
		}
		for i, r := range []Result{a, b} {
			p[i].found += r.Found
			p[i].expected += r.Expected
			p[i].right += r.True
			p[i].wrong += len(r.False)
		}
		c.OnlySecond += len(without(a.Missed, b.Missed))
		c.OnlyFirst += len(without(b.Missed, a.Missed))
	}
	c.Cases = len(order)
	if c.Cases < 2 {
		return c, errors.New("a comparison needs two cases at least")
	}
	c.F1 = difference(order)
	c.McNemar = mcNemar(c.OnlyFirst, c.OnlySecond)
	draw := rand.New(rand.NewPCG(1, 2)) // the same reports give the same figures
	differences := make([]float64, resamples)
	sample := make([]*pair, len(order))
	for i := range differences {
		for j := range sample {
			sample[j] = order[draw.IntN(len(order))]
		}
		differences[i] = difference(sample)
	}
	slices.Sort(differences)
	c.F1Interval = Interval{differences[resamples/40], differences[resamples-1-resamples/40]}
	c.CasesNeeded = int(math.Ceil(float64(c.Cases) * math.Pow((certainty+power)*deviation(differences)/points, 2)))
	switch {
	case c.F1Interval.Low > 0:
		c.Verdict = Better
	case c.F1Interval.High < 0:
		c.Verdict = Worse
	default:
		c.Verdict = CannotBeTold
	}
	return c, nil
}

// difference returns by how much F1 of the second reports is higher.
func difference(pairs []*pair) float64 {
	var f1 [2]float64
	for i := range f1 {
		var found, expected, right, wrong int
		for _, p := range pairs {
			found, expected, right, wrong = found+p[i].found, expected+p[i].expected, right+p[i].right, wrong+p[i].wrong
		}
		if v := harmonic(found, expected, right, wrong); v != nil {
			f1[i] = *v
		}
	}
	return f1[1] - f1[0]
}

// without returns the elements of texts that others does not have, as often as it lacks
// them.
func without(texts, others []string) []string {
	texts = slices.Clone(texts)
	for _, other := range others {
		if i := slices.Index(texts, other); i >= 0 {
			texts = slices.Delete(texts, i, i+1)
		}
	}
	return texts
}

// mcNemar returns the probability that a+b fair coins fall at least as unevenly as a and b, in
// either direction.
func mcNemar(a, b int) float64 {
	logFactorial := func(n int) float64 {
		log, _ := math.Lgamma(float64(n + 1))
		return log
	}
	n, tail := a+b, 0.0
	for k := range min(a, b) + 1 {
		tail += math.Exp(logFactorial(n) - logFactorial(k) - logFactorial(n-k) - float64(n)*math.Ln2)
	}
	return min(1, 2*tail)
}

// deviation returns the standard deviation of values.
func deviation(values []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	for _, v := range values {
		squares += math.Pow(v-sum/float64(len(values)), 2)
	}
	return math.Sqrt(squares / float64(len(values)-1))
}
