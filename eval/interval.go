package eval

import "math"

// An Interval holds the true mean with 95 % confidence, if the values of the
// runs scatter normally.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// student holds the two-sided 95 % quantiles of Student's t by degrees of
// freedom, from 1. Beyond, the normal distribution is close enough.
var student = []float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

const normal = 1.960

// intervals are those of all shares that have a value in two runs or more.
func intervals(results []Result, runs int) map[string]Interval {
	if runs < 2 {
		return nil
	}
	out := map[string]Interval{}
	for name := range new(Scores).shares() {
		if values := perRun(results, name); len(values) > 1 {
			out[name] = intervalOf(values)
		}
	}
	return out
}

// intervalOf is that of the mean of at least two values.
func intervalOf(values []float64) Interval {
	n, middle := float64(len(values)), *mean(values)
	var squares float64
	for _, v := range values {
		squares += (v - middle) * (v - middle)
	}
	quantile := normal
	if freedom := len(values) - 1; freedom <= len(student) {
		quantile = student[freedom-1]
	}
	half := quantile * math.Sqrt(squares/(n-1)/n)
	return Interval{middle - half, middle + half}
}

// mean is nil for no values.
func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	sum /= float64(len(values))
	return &sum
}
