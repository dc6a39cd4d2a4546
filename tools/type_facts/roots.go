package main

import (
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	custommetricsv1beta1 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	custommetricsv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalmetricsv1beta1 "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

func roots() []reflect.Type {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
		autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme,
		storagev1.AddToScheme, apiextensionsv1.AddToScheme, custommetricsv1beta1.AddToScheme,
		custommetricsv1beta2.AddToScheme, externalmetricsv1beta1.AddToScheme, metricsv1.AddToScheme,
		metricsv1beta1.AddToScheme, apiregistrationv1.AddToScheme, admissionregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	types := []reflect.Type{
		reflect.TypeFor[runtime.Unknown](), reflect.TypeFor[runtime.TypeMeta](), reflect.TypeFor[metav1.Condition](),
		reflect.TypeFor[metav1.APIResourceList](), reflect.TypeFor[metav1.APIGroupList](),
		reflect.TypeFor[metav1.APIVersions](), reflect.TypeFor[metav1.PartialObjectMetadataList](),
		reflect.TypeFor[metav1.Table](), reflect.TypeFor[metav1.TableOptions](), reflect.TypeFor[metav1.List](),
	}
	for _, t := range scheme.AllKnownTypes() {
		if served(t) {
			types = append(types, t)
		}
	}
	sort.Slice(types, func(i, j int) bool { return messageName(types[i]) < messageName(types[j]) })
	return types
}

// served leaves out what registration brings along for the inner workings of Go's API machinery.
func served(t reflect.Type) bool {
	return !strings.HasPrefix(t.Name(), "Internal")
}
