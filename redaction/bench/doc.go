// Package bench compares the redaction pipeline with gitleaks as a library, on
// the same bytes in the same run. It is a module of its own, so that what
// gitleaks depends on is no dependency of the service.
package bench
