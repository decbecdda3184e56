// Package bench compares the redaction pipeline with gitleaks as a library, on the
// same bytes in the same run. It is a separate module, so that the service does not
// depend on gitleaks.
package bench
