"""Calls admission webhooks for writes (kube-apiserver's MutatingAdmissionWebhook and ValidatingAdmissionWebhook).

Entry point: `webhook_admission.WebhookAdmission`, which `podscaler up` sets as the admission of `registry.objects`.
Reading order: `configurations` (the stored webhooks), `matching` (which of them a write calls), `admission_reviews`
(request and response), `webhook_client` (HTTPS), `webhook_admission`.
May import: `apiserver.handlers` and below, `controlplane.aggregator`.
"""
