// Package suite imports the end-to-end tests of Kubernetes, so that go.mod lists what their test binary needs.
package suite

import _ "k8s.io/kubernetes/test/e2e"
